/** How the text of a flag is read. */
export type FlagKind =
  | "bool"
  | "int32"
  | "int64"
  | "level"
  | "string"
  | "duration"
  | "quantity"
  | "ip"
  | "list"
  | "map"
  | "mapEntry"
  | "thresholds"
  | "gates"
  | "headers"
  | "vmodule"
  | "taints"
  | "reservedMemory"
  | "version";

/** The flag of a field. */
export interface FieldFlag {
  readonly name: string;
  readonly kind: FlagKind;
  /** The reference marks it deprecated: the file is the place to set it. */
  readonly deprecated?: true;
}

/** One field of KubeletConfiguration v1beta1 (contract config.md section 2). */
export interface FieldSpec {
  /** Path in the file, such as `authentication.webhook.cacheTTL`. */
  readonly path: string;
  readonly type: string;
  /** A zero value that is written out counts as set; without this it means the default. */
  readonly pointer?: true;
  /** The default, as the file would write it. Absent: the zero value. */
  readonly initial?: boolean | number | string | readonly string[];
  readonly flag?: FieldFlag;
  /** What is allowed; empty when its type says it all. */
  readonly rule?: string;
  /** What it is for. */
  readonly about: string;
}

/** Whether the agent does what the field says. */
export type ActedOn = boolean | "partly";
