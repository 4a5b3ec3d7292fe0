import { configureTextEncoding, getTextEncoding } from "@bufbuild/protobuf/wire";
import { asciiText } from "../mod/base/ascii.ts";

/**
 * Has the protobuf library read ASCII by the fast way: a relist reads thousands of short strings each second, and
 * TextDecoder takes longer (ascii.ts). Other text is read as before.
 */
export function readTextFast(): void {
  const before = getTextEncoding();
  if (before.decodeUtf8.name === asciiFirst) return;
  const read = {
    [asciiFirst]: (bytes: Uint8Array, strict?: boolean) => asciiText(bytes) ?? before.decodeUtf8(bytes, strict),
  };
  configureTextEncoding({ ...before, decodeUtf8: read[asciiFirst] ?? before.decodeUtf8 });
}

/** The name of the function, by which it is known again. */
const asciiFirst = "asciiFirst";
