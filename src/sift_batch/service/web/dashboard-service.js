// How is the service asked? Calls with the key of this tab, events as a stream, what went wrong as a `Problem`.
// What is asked, and when, is the business of `dashboard-jobs` and of the pages.

const KEY = "sift-batch-key";
const QUIET = 45_000; // a comment comes every 15 seconds: after three times as long nobody is there

const SAID = {
  caller_busy: "You have as many live jobs as you may have. Wait for one, or cancel one.",
  jobs_busy: "The service has as many live jobs as it may have. Try again later.",
  job_live: "The job has not ended yet.",
  store_unavailable: "The service can't use its store at the moment. Nothing has changed; try again later.",
  bad_request: "Not started; this is wrong:",
};

let key = sessionStorage.getItem(KEY) ?? "";
let session = new AbortController(); // ends every request when the key goes
const sleepers = new Set(); // ends the pauses that are under way

export const hooks = { refused() {} }; // told when the key of this tab is let in no more

export const hasKey = () => key !== "";

export function useKey(given) {
  key = given;
  if (key) sessionStorage.setItem(KEY, key);
  else sessionStorage.removeItem(KEY);
  session.abort();
  session = new AbortController();
}

/** A call that failed: `status` is 0 when nothing answered, `view` the problem document. */
export class Problem extends Error {
  constructor(status, view) {
    const said = [view.detail ?? `The service answered ${status}.`, view.hint];
    super(SAID[view.code] ?? said.filter(Boolean).join("; "));
    Object.assign(this, { status, view });
  }

  get unknownKey() {
    return this.status === 401 || this.view.code === "auth_failures";
  }
}

export async function call(method, path, { body, headers, signal } = {}) {
  const signals = signal ? AbortSignal.any([session.signal, signal]) : session.signal;
  const sent = { authorization: `Bearer ${key}`, ...(body && { "content-type": "application/json" }), ...headers };
  let answer;
  try {
    answer = await fetch(path, {
      method,
      headers: sent,
      body: body && JSON.stringify(body),
      signal: signals,
      cache: "no-store",
    });
  } catch (error) {
    if (signals.aborted) throw error;
    throw new Problem(0, { detail: "The service can't be reached." });
  }
  if (answer.ok) return answer;
  const problem = new Problem(answer.status, await answer.json().catch(() => ({})));
  if (key && problem.unknownKey) hooks.refused(problem);
  throw problem;
}

export const read = async (path) => (await call("GET", path)).json();

/** Server-sent events of an answer, to its end; ends as well when nothing has come for long. */
export async function* events(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  for (let text = ""; ;) {
    const quiet = setTimeout(() => reader.cancel(), QUIET);
    const { value, done } = await reader.read().finally(() => clearTimeout(quiet));
    if (done) return;
    const blocks = (text + value).split(/\r?\n\r?\n/);
    text = blocks.pop();
    for (const block of blocks) {
      const event = { event: "message", id: "", data: "" };
      // Split here: to a pattern, a line ends at separators too that are plain characters to an event.
      for (const line of block.split(/\r?\n/)) {
        const [, field, what] = /^(\w+): ?([^]*)$/.exec(line) ?? [];
        if (field) event[field] = what;
      }
      if (event.data) yield event;
    }
  }
}

/** Wait; a wake-up or an abort ends it early. */
export function pause(seconds, signal = session.signal) {
  return new Promise((resolve) => {
    const stops = [signal, session.signal]; // they outlive the pause by hours: nothing of it stays there
    const end = () => {
      clearTimeout(timer);
      sleepers.delete(end);
      for (const stop of stops) stop.removeEventListener("abort", end);
      resolve();
    };
    const timer = setTimeout(end, seconds * 1000);
    sleepers.add(end);
    for (const stop of stops) stop.addEventListener("abort", end);
  });
}

export const wake = () => [...sleepers].forEach((end) => end());
