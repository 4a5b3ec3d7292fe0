/** The name of the agent's local socket in its root directory. */
export const localSocket = "denolet.sock";
