// What is known of the jobs? Read as often as the service asks for, and followed live by their events.
// Nothing is drawn here: whoever shows a job is told through `on`.

import { call, events, hasKey, pause, Problem, read, wake } from "/?dashboard-service.js";

// A browser opens six connections to one host, for all its tabs together: so few jobs are followed, and by
// a tab that nobody sees only the one that it shows. With every connection held, nothing could be asked.
const STREAMS = 2;
const IDLE = 10; // seconds between two looks at the list while nothing is live
const SPARE = 3000; // what is used costs the service more than the list: it is not read as often
const LONGEST = 30;

export const jobs = new Map(); // job views by id; `apply` alone puts them in
export const list = { ids: [], next: null, status: "" }; // as it is shown
export const used = { limits: null, at: 0, changed: true }; // when that was read, and whether it is old since
const versions = new Map(); // the last version heard of a job, to resume from
const streams = new Map(); // what ends a job's stream
const listeners = { job: [], target: [], list: [], limits: [], trouble: [], lost: [] };
let timer = 0,
  turn = 0,
  failures = 0,
  first = "";

export const on = (name, listener) => listeners[name].push(listener);
const tell = (name, ...what) => listeners[name].forEach((listener) => listener(...what));

export const finished = (job) => job.targets.done + job.targets.failed;
export const live = () => [...jobs.values()].filter((job) => !job.settled);

// Whatever is told of a job comes through here: an older view never replaces a newer one.
export function apply(job) {
  const old = jobs.get(job.id);
  if (old && ((old.settled && !job.settled) || finished(job) < finished(old))) return;
  jobs.set(job.id, job);
  used.changed ||= old?.stored_bytes !== job.stored_bytes;
  tell("job", job, old);
  follow();
  if (old && !old.settled && job.settled) hurry();
}

// What is used has changed: don't wait for the next time.
function hurry() {
  Object.assign(used, { at: 0, changed: true });
  refresh();
}

export function drop(id) {
  jobs.delete(id);
  versions.delete(id);
  list.ids = list.ids.filter((other) => other !== id);
  tell("list");
  hurry();
}

export function forget() {
  clearTimeout(timer);
  turn += 1;
  for (const stop of streams.values()) stop.abort();
  for (const known of [jobs, versions, streams]) known.clear();
  Object.assign(list, { ids: [], next: null, status: "" });
  Object.assign(used, { limits: null, at: 0, changed: true });
  failures = 0;
}

/** Read the list and what is used, again and again; whoever calls it twice hurries the next time. */
export async function refresh() {
  const mine = ++turn;
  clearTimeout(timer);
  let seconds;
  try {
    await readList(mine);
    if (mine === turn && used.changed && Date.now() > used.at + SPARE) await readLimits();
    if (mine !== turn) return;
    if (failures) wake();
    failures = 0;
    tell("trouble", "");
    seconds = Math.max(2, Math.min(IDLE, ...live().map((job) => job.poll_after ?? IDLE)));
  } catch (problem) {
    if (mine !== turn || !hasKey()) return;
    if (!(problem instanceof Problem)) throw problem;
    failures += 1;
    tell("trouble", problem.status ? "unavailable" : "unreachable");
    seconds = problem.view.retry_after ?? Math.min(LONGEST, 2 ** failures);
  }
  if (!document.hidden) timer = setTimeout(refresh, seconds * 1000);
}

const page = (cursor) => {
  const query = new URLSearchParams({
    limit: 50,
    ...(list.status && { status: list.status }),
    ...(cursor && { cursor }),
  });
  return read(`/v1/batch?${query}`);
};

async function readList(mine) {
  const { items, next_cursor } = await page();
  if (mine !== turn) return;
  // Older pages stay as they were read; what is missing from the first one has gone.
  const ids = items.map((job) => job.id),
    oldest = items.at(-1)?.created_at;
  const rest = next_cursor ? list.ids.filter((id) => !ids.includes(id) && jobs.get(id)?.created_at <= oldest) : [];
  if (!rest.length) list.next = next_cursor;
  for (const id of list.ids) if (!ids.includes(id) && !rest.includes(id) && id !== first) [jobs, versions].forEach((known) => known.delete(id));
  list.ids = [...ids, ...rest];
  items.forEach(apply);
  tell("list");
}

export async function readOlder() {
  const { items, next_cursor } = await page(list.next);
  list.next = next_cursor;
  list.ids.push(...items.map((job) => job.id).filter((id) => !list.ids.includes(id)));
  items.forEach(apply);
  tell("list");
}

async function readLimits() {
  Object.assign(used, { limits: await read("/v1/limits"), at: Date.now(), changed: false });
  tell("limits");
}

/** Read one job, as it is now. */
export async function look(id) {
  const answer = await call("GET", `/v1/batch/${id}`);
  versions.set(id, /\d+/.exec(answer.headers.get("etag"))?.[0] ?? "");
  const job = await answer.json();
  apply(job);
  return job;
}

/** Follow the job that is looked at before all others. */
export function prefer(id) {
  first = id;
  follow();
}

export function follow() {
  const rank = (job) => (job.id === first ? 2 : job.status === "running" ? 1 : 0);
  const wanted = live()
    .filter((job) => !document.hidden || job.id === first)
    .sort((a, b) => rank(b) - rank(a))
    .slice(0, STREAMS)
    .map((job) => job.id);
  for (const [id, stop] of streams) if (!wanted.includes(id)) stop.abort();
  for (const id of wanted) if (!streams.has(id)) stay(id);
}

// Keep a job's stream open until the job has settled, whatever breaks in between.
async function stay(id) {
  const stop = new AbortController();
  streams.set(id, stop);
  let tries = 0;
  while (!stop.signal.aborted) {
    try {
      if (!versions.has(id)) await look(id);
      const headers = { "last-event-id": versions.get(id) };
      const answer = await call("GET", `/v1/batch/${id}/events`, { headers, signal: stop.signal });
      if (answer.status === 204) await look(id);
      else
        for await (const event of events(answer.body)) {
          tries = 0;
          hear(id, event);
          if (event.id) versions.set(id, event.id);
        }
    } catch (error) {
      if (error.status === 404 || error.status === 410) {
        drop(id);
        tell("lost", id, error);
      }
    }
    if (jobs.get(id)?.settled ?? true) break;
    await pause(Math.min(LONGEST, 3 * 2 ** tries++) * (0.75 + Math.random() / 2), stop.signal);
  }
  if (streams.get(id) === stop) streams.delete(id);
}

function hear(id, { event, data }) {
  if (event === "target") tell("target", id, JSON.parse(data));
  else if (event !== "shutdown") apply(JSON.parse(data));
  else {
    failures ||= 1;
    tell("trouble", "stopping");
    clearTimeout(timer);
    timer = setTimeout(refresh, 3000);
  }
}
