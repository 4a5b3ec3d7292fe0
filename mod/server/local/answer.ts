import { messageOf } from "../../base/errors.ts";
import type { JournalRecord } from "../../base/journal.ts";
import type { LocalBackend, LocalImages, LocalPods, LocalRecords } from "./types.ts";

/** Most pods and records in one answer, and most characters of a text in a record. */
const limits = { pods: 1000, images: 1000, records: 500, text: 4096 } as const;

export interface LocalAnswer {
  readonly status: number;
  /** JSON. */
  readonly body: string;
}

/**
 * Answers a request of the local socket. Pure apart from the backend, never waits, and bounded whatever the agent
 * holds: /pods, /journal?uid=UID, /config, /state, by GET.
 */
export function answerLocal(request: { method: string; url: string }, backend: LocalBackend): LocalAnswer {
  if (request.method !== "GET") {
    return failure(405, `${request.method}: only GET is served here; nothing can be changed`);
  }
  const url = new URL(request.url, "http://local");
  switch (url.pathname) {
    case "/pods":
      return json(podsAnswer(backend));
    case "/journal":
      return json(recordsAnswer(backend, url.searchParams.get("uid") ?? undefined));
    case "/config":
      return json(backend.config());
    case "/state":
      return json(backend.state());
    default:
      return failure(
        404,
        `${url.pathname.slice(0, 80)} is not served here; there are /pods, /journal, /config, /state, /images`,
      );
  }
}

/** Answers `GET /images`, the one question that waits for the runtime; undefined for any other. */
export function answerImages(
  request: { method: string; url: string },
  backend: LocalBackend,
  signal: AbortSignal,
): Promise<LocalAnswer> | undefined {
  if (request.method !== "GET" || new URL(request.url, "http://local").pathname !== "/images") return undefined;
  const answer = async (): Promise<LocalAnswer> => {
    try {
      const { images, usagePercent } = await backend.images(signal);
      const shown = images.slice(0, limits.images).map((one) => ({ ...one, message: cut(one.message) }));
      const left = Math.max(0, images.length - limits.images);
      return json({ images: shown, left, usagePercent } satisfies LocalImages);
    } catch (thrown) {
      return failure(503, cut(messageOf(thrown)));
    }
  };
  return answer();
}

function podsAnswer(backend: LocalBackend): LocalPods {
  const all = backend.pods();
  return { pods: all.slice(0, limits.pods), left: Math.max(0, all.length - limits.pods) };
}

function recordsAnswer(backend: LocalBackend, uid: string | undefined): LocalRecords {
  const all = backend.records(uid);
  return { records: all.slice(-limits.records).map(shortened), left: Math.max(0, all.length - limits.records) };
}

function cut(text: string): string {
  return text.length > limits.text ? `${text.slice(0, limits.text)}…` : text;
}

function shortened(record: JournalRecord): JournalRecord {
  return {
    ...record,
    message: cut(record.message),
    ...(record.error === undefined ? {} : { error: cut(record.error) }),
  };
}

function json(value: unknown): LocalAnswer {
  return { status: 200, body: JSON.stringify(value) ?? "null" };
}

function failure(status: number, error: string): LocalAnswer {
  return { status, body: JSON.stringify({ error }) };
}
