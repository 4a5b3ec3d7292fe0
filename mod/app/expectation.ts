/**
 * Annotation by which a manifest tells run-once mode that the pod is meant to end otherwise than ready:
 * `crashloop` (it restarts again and again) or `failed` (it ends in phase Failed). Ours; no effect outside run-once.
 */
export const expectAnnotation = "denolet.dev/expect";
