// What does a caller see of its own jobs? The page at `/`: it reads the API with the key that was typed in.
// Whatever comes from outside goes into the page as text (`h`, `textContent`), never as HTML.

const $ = (id) => document.getElementById(id);
const KEY = "sift-batch-key", STREAMS = 4, PART = 20_000, WINDOW = 300;

let key = sessionStorage.getItem(KEY) ?? "";
let session = new AbortController(); // ends every request when the key is dropped
let limits = null;
const jobs = new Map(); // job views by id; `apply` alone writes it
let order = [], nextJobs = null; // ids as they are listed
const versions = new Map(); // the last version heard of each job, to resume from
let open = null; // the opened job: { id, targets, next, shown, idx }

// ---- words

const number = new Intl.NumberFormat("en");
const count = (n, what) => `${number.format(n)} ${what}${n === 1 ? "" : "s"}`;
const WAITING = {
  queue: "Waiting for its turn: other jobs go first",
  gate: "Waiting for a free slot: all of them are in use",
  host: "Waiting for the site: it is not asked by more at once, or more often",
  retry_after: "Waiting as long as the site asked for",
  store: "Waiting for the store: it can’t be written at the moment",
};
const GONE = {
  ttl: "Nobody had read it for as long as jobs are kept.",
  budget: "It made room for newer jobs.",
  deleted: "It was deleted.",
};
const SAID = {
  caller_busy: "You have as many live jobs as you may have. Wait for one, or cancel one.",
  jobs_busy: "The service has as many live jobs as it may have. Try again later.",
  job_live: "The job has not ended yet.",
  store_unavailable: "The service can’t use its store at the moment. Nothing has changed; try again later.",
  bad_request: "Not started: something is wrong with these lines.",
};

function span(seconds) {
  if (seconds < 10) return `${Math.round(seconds * 10) / 10} s`;
  if (seconds < 90) return `${Math.round(seconds)} s`;
  return seconds < 5400 ? `${Math.round(seconds / 60)} min` : `${Math.round(seconds / 3600)} h`;
}

function size(bytes) {
  const step = bytes < 1024 ? 0 : bytes < 2 ** 20 ? 1 : bytes < 2 ** 30 ? 2 : 3;
  return `${number.format(+(bytes / 1024 ** step).toFixed(step ? 1 : 0))} ${["bytes", "KiB", "MiB", "GiB"][step]}`;
}

function time(text) {
  const at = new Date(text), today = at.toDateString() === new Date().toDateString();
  return h("time", { dateTime: text }, at.toLocaleString("en-GB", { timeStyle: "medium", dateStyle: today ? undefined : "medium" }));
}

const finished = (job) => job.targets.done + job.targets.failed;
const left = (job) => job.targets.total - finished(job);

// ---- elements

function h(name, members, ...children) {
  const made = document.createElement(name);
  for (const [member, value] of Object.entries(members ?? {})) {
    if (member in made) made[member] = value;
    else made.setAttribute(member, value);
  }
  made.append(...children.filter((child) => child != null && child !== ""));
  return made;
}

const state = (status) => h("span", { className: `state ${status}` }, status);

function bar(job) {
  const drawn = h("div", { className: "bar", role: "progressbar", "aria-label": `Progress of job ${job.id}` });
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  svg.setAttribute("viewBox", "0 0 100 1");
  svg.setAttribute("preserveAspectRatio", "none");
  for (const part of ["done", "failed", "running"]) {
    const rect = svg.appendChild(document.createElementNS(svg.namespaceURI, "rect"));
    rect.setAttribute("class", part);
    rect.setAttribute("height", 1);
  }
  drawn.append(svg);
  return drawn;
}

function setBar(drawn, job) {
  const { total, failed } = job.targets;
  let x = 0;
  for (const rect of drawn.firstChild.children) {
    const width = (100 * job.targets[rect.getAttribute("class")]) / total;
    rect.setAttribute("x", x);
    rect.setAttribute("width", width);
    x += width;
  }
  drawn.setAttribute("aria-valuemax", total);
  drawn.setAttribute("aria-valuenow", finished(job));
  drawn.setAttribute("aria-valuetext", `${finished(job)} of ${total} finished` + (failed ? `, ${failed} failed` : ""));
}

function say(text, bad = false) {
  $("say").className = bad ? "notice bad" : "notice";
  $("say").textContent = text;
}

const TROUBLE = {
  unreachable: "The service can’t be reached. Trying again shortly; what is shown may be old.",
  unavailable: "The service can’t use its store at the moment. Nothing is lost; trying again shortly.",
  stopping: "The service is stopping. This page connects again when it is back.",
};

function trouble(kind) {
  const text = TROUBLE[kind] ?? "", said = $("trouble").firstElementChild;
  if (said.textContent !== text) said.textContent = text;
  $("trouble").hidden = !text;
  $("link").className = key && !text ? "live" : "";
  $("link").textContent = !key ? "" : text ? "Not connected" : "Live";
}

// ---- calls

class Problem extends Error {
  constructor(status, view) {
    super(SAID[view.code] ?? [view.detail ?? view.title ?? `The service answered ${status}.`, view.code && view.hint].filter(Boolean).join("; "));
    Object.assign(this, { status, view });
  }
}

async function call(method, path, { body, headers, signal } = {}) {
  const signals = signal ? AbortSignal.any([session.signal, signal]) : session.signal;
  const sent = { authorization: `Bearer ${key}`, ...headers };
  if (body) sent["content-type"] = "application/json";
  let answer;
  try {
    answer = await fetch(path, { method, headers: sent, body: body && JSON.stringify(body), signal: signals, cache: "no-store" });
  } catch (error) {
    if (signals.aborted) throw error;
    throw new Problem(0, { detail: "The service can’t be reached." });
  }
  if (answer.ok) return answer;
  const problem = new Problem(answer.status, await answer.json().catch(() => ({})));
  if (key && (answer.status === 401 || problem.view.code === "auth_failures")) signOut(wrongKey(problem));
  throw problem;
}

const wrongKey = ({ status, view }) =>
  status === 429
    ? `This is not a valid key, and too many such were tried. Wait ${span(view.retry_after ?? 60)} before the next one.`
    : "The service does not know this key, or knows it no more.";

let pausing = new Set(); // wakes those that pause

const pause = (seconds, signal) =>
  new Promise((resolve) => {
    const end = () => { clearTimeout(timer); pausing.delete(end); resolve(); };
    const timer = setTimeout(end, seconds * 1000);
    pausing.add(end);
    signal.addEventListener("abort", end, { once: true });
  });

// ---- the jobs: read as often as the service asks for, and followed live

let timer = 0, turn = 0, failures = 0, limitsAt = 0;

async function refresh() {
  const mine = ++turn;
  clearTimeout(timer);
  let seconds;
  try {
    await loadJobs();
    if (Date.now() > limitsAt + 10_000) await loadLimits();
    if (mine !== turn) return;
    if (failures) [...pausing].forEach((wake) => wake());
    failures = 0;
    trouble("");
    seconds = Math.max(2, Math.min(10, ...[...jobs.values()].map((job) => job.poll_after ?? 10)));
  } catch (problem) {
    if (mine !== turn || !key) return;
    if (!(problem instanceof Problem)) throw problem;
    trouble(problem.status ? "unavailable" : "unreachable");
    seconds = problem.view.retry_after ?? Math.min(30, 2 ** ++failures);
    failures ||= 1;
  }
  if (!document.hidden) timer = setTimeout(refresh, seconds * 1000);
}

const listed = (cursor) => {
  const query = new URLSearchParams({ limit: 50 }), status = $("jobs-filter").value;
  if (status) query.set("status", status);
  if (cursor) query.set("cursor", cursor);
  return call("GET", `/v1/batch?${query}`).then((answer) => answer.json());
};

async function loadJobs() {
  const status = $("jobs-filter").value;
  const { items, next_cursor } = await listed();
  if (status !== $("jobs-filter").value) return;
  const oldest = items.at(-1)?.created_at ?? "";
  // Older pages stay as they were read; what is missing from the first one has gone.
  const rest = next_cursor ? order.filter((id) => !items.some((job) => job.id === id) && jobs.get(id)?.created_at < oldest) : [];
  if (!rest.length) nextJobs = next_cursor;
  for (const id of order) if (!rest.includes(id) && id !== open?.id) jobs.delete(id);
  order = [...items.map((job) => job.id), ...rest];
  items.forEach(apply);
  drawList();
}

async function loadLimits() {
  limits = await (await call("GET", "/v1/limits")).json();
  limitsAt = Date.now();
  drawTiles();
}

// Whatever is told of a job comes through here: an older view never replaces a newer one.
function apply(job) {
  const old = jobs.get(job.id);
  if (old && ((old.settled && !job.settled) || finished(job) < finished(old))) return;
  jobs.set(job.id, job);
  if (old && !old.settled && job.settled) {
    limitsAt = 0;
    if (open?.id === job.id) say(`The job has ended: ${outcome(job)}.`);
  }
  drawRow(job.id);
  if (open?.id === job.id) drawHead();
  drawTiles();
  follow();
}

const streams = new Map(); // a browser opens few connections to one host: so only some are followed

function follow() {
  const live = [...jobs.values()].filter((job) => !job.settled).map((job) => job.id);
  const wanted = live.sort((a, b) => (b === open?.id) - (a === open?.id)).slice(0, STREAMS);
  for (const [id, stop] of streams) if (!wanted.includes(id)) stop.abort();
  for (const id of wanted) if (!streams.has(id)) listen(id);
}

async function listen(id) {
  const stop = new AbortController();
  streams.set(id, stop);
  let tries = 0;
  while (!stop.signal.aborted && !session.signal.aborted) {
    try {
      if (!versions.has(id)) await look(id);
      const headers = { "last-event-id": versions.get(id) };
      const answer = await call("GET", `/v1/batch/${id}/events`, { headers, signal: stop.signal });
      for await (const event of answer.body ? events(answer.body) : []) {
        tries = 0;
        hear(id, event);
        if (event.id) versions.set(id, event.id);
      }
      if (answer.status === 204) await look(id);
    } catch (error) {
      if (error.status === 404 || error.status === 410) {
        jobs.delete(id);
        if (open?.id === id) showMissing(error);
      }
    }
    if (jobs.get(id)?.settled ?? true) break;
    await pause(Math.min(30, 3 * 2 ** tries++) * (0.75 + Math.random() / 2), AbortSignal.any([stop.signal, session.signal]));
  }
  if (streams.get(id) === stop) streams.delete(id);
}

async function* events(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  for (let text = ""; ; ) {
    // A comment comes every 15 seconds: after three times as long, nobody is there any more.
    const quiet = setTimeout(() => reader.cancel(), 45_000);
    const { value, done } = await reader.read().finally(() => clearTimeout(quiet));
    if (done) return;
    const blocks = (text + value).split(/\r?\n\r?\n/);
    text = blocks.pop();
    for (const block of blocks) {
      const event = { event: "message", id: "", data: "" };
      for (const [, field, what] of block.matchAll(/^(\w+): ?(.*)$/gm)) event[field] = what;
      if (event.data) yield event;
    }
  }
}

function hear(id, { event, data }) {
  if (event === "shutdown") {
    trouble("stopping");
    failures ||= 1;
    clearTimeout(timer);
    timer = setTimeout(refresh, 3000);
  } else if (event === "target") {
    if (open?.id === id) putTarget(JSON.parse(data));
  } else {
    apply(JSON.parse(data));
    if (open?.id === id) markRunning();
  }
}

async function look(id) {
  const answer = await call("GET", `/v1/batch/${id}`);
  versions.set(id, /\d+/.exec(answer.headers.get("etag"))?.[0] ?? "");
  const job = await answer.json();
  apply(job);
  return job;
}

// ---- the list

const rows = new Map();

function drawList() {
  $("job-list").hidden = !order.length;
  $("no-jobs").hidden = order.length > 0;
  $("no-jobs").textContent = $("jobs-filter").value ? "No job is in this state." : "No jobs yet. Start one above, or send one to the API.";
  $("more-jobs").hidden = !nextJobs;
  for (const id of rows.keys()) if (!order.includes(id)) { rows.get(id).remove(); rows.delete(id); }
  order.forEach((id, at) => {
    drawRow(id, true);
    const row = rows.get(id), there = $("job-list").children[at];
    if (row !== there) $("job-list").insertBefore(row, there ?? null);
  });
}

function drawRow(id, make = false) {
  const job = jobs.get(id);
  if (!rows.has(id)) {
    if (!make) return;
    const link = h("a", { href: `#/${id}`, className: "id" }, id);
    rows.set(id, h("li", {}, h("div", { className: "job-row" }, link, h("span"), bar(job), h("p", { className: "note" }))));
  }
  const [, status, progress, note] = rows.get(id).firstChild.children;
  status.className = `state ${job.status}`;
  status.textContent = job.status;
  setBar(progress, job);
  note.replaceChildren(
    h("span", {}, time(job.created_at)),
    h("span", {}, `${finished(job)} of ${count(job.targets.total, "target")}`),
    ...(job.targets.failed ? [h("span", { className: "fail" }, `${job.targets.failed} failed`)] : []),
    ...(job.settled ? [h("span", {}, size(job.stored_bytes))] : []),
    ...(!job.settled && job.eta_seconds != null ? [h("span", {}, `about ${span(job.eta_seconds)} left`)] : []),
    ...(job.waiting ? [h("span", { className: "why" }, WAITING[job.waiting.reason])] : []),
  );
}

// ---- what is used: figures, and slots over time

const samples = []; // [time, slots] at each change

function drawTiles() {
  const live = [...jobs.values()].filter((job) => !job.settled);
  // A target that waits is marked as running too, but holds no slot.
  const used = live.reduce((sum, job) => sum + (job.waiting ? 0 : job.targets.running), 0);
  const now = Date.now() / 1000;
  if (samples.at(-1)?.[1] !== used) samples.push([now, used]);
  while (samples[1]?.[0] < now - WINDOW) samples.shift();
  const peak = Math.max(...samples.map(([, n]) => n)), top = Math.max(4, peak);
  let path = "", y = 59;
  samples.forEach(([at, n], nth) => {
    const x = Math.max(0, 300 - ((now - at) * 300) / WINDOW);
    path += nth ? `H${x}` : `M${x} `;
    y = 59 - (56 * n) / top;
    path += nth ? `V${y}` : `${y}`;
  });
  $("graph").querySelector(".line").setAttribute("d", `${path}H300`);
  $("graph").querySelector(".area").setAttribute("d", `${path}H300V60H${/[\d.]+/.exec(path)}Z`);
  $("graph-title").textContent = `Slots that your jobs used in the last 5 minutes: now ${used}, at most ${peak}`;
  if (!limits) return;
  const figure = (id, value, of, help) => {
    $(id).replaceChildren(`${value} `, h("small", {}, of));
    $(`${id}-help`).textContent = help;
  };
  const waiting = live.reduce((sum, job) => sum + left(job), 0);
  figure("live", live.length, `of ${limits.jobs_per_caller}`, live.length ? `${count(waiting, "target")} to go` : "nothing is being fetched");
  const kept = limits.ttl_seconds;
  figure("stored", size(limits.stored_bytes), "", kept ? `a job is kept for ${span(kept)} after it was last read` : "");
  figure("slots", used, `of ${limits.gate.total}`, `at most ${limits.gate.per_host} for one site`);
}

// ---- one job

const outcome = (job) => {
  const { done, failed, pending } = job.targets;
  return [`${done} done`, failed && `${failed} failed`, pending && `${pending} not fetched`].filter(Boolean).join(", ");
};

const head = {
  state: h("p", { className: "lead" }), why: h("p"), bar: null, facts: h("dl"),
  cancel: h("button", { className: "quiet", type: "button", onclick: () => act(cancel) }, "Cancel"),
  rerun: h("button", { type: "button", onclick: () => act(rerun) }, "Run again"),
  save: h("button", { className: "quiet", type: "button", onclick: () => act(save) }, "Save results"),
  remove: h("button", { className: "danger", type: "button", onclick: () => act(remove) }, "Delete"),
};

function drawHead() {
  const job = jobs.get(open.id), live = !job.settled, focused = document.activeElement;
  if (open.idx == null) document.title = `${finished(job)} of ${job.targets.total} · Job ${job.id} · sift-batch`;
  head.state.replaceChildren(state(job.status), h("span", {}, live ? `${finished(job)} of ${count(job.targets.total, "target")} finished` : outcome(job)));
  head.why.className = job.waiting ? "why" : "";
  head.why.replaceChildren(...(job.waiting ? [`${WAITING[job.waiting.reason]}, since `, time(job.waiting.since)] : [job.hint && `${job.hint[0].toUpperCase()}${job.hint.slice(1)}.`]));
  head.why.hidden = !head.why.textContent;
  setBar(head.bar, job);
  const eta = live ? job.eta_seconds : null;
  const facts = [
    live && ["Time left", eta == null ? "not known yet" : `about ${span(eta)}`],
    eta != null && left(job) && ["Pace", `about ${span(eta / left(job))} a target`],
    ["Submitted", time(job.created_at)],
    job.started_at && ["Started", time(job.started_at)],
    job.finished_at && ["Finished", time(job.finished_at)],
    job.expires_at && ["Kept until", time(job.expires_at)],
    ["Stored", size(job.stored_bytes)],
    job.rerun_of && ["Run again of", h("a", { href: `#/${job.rerun_of}`, className: "id" }, job.rerun_of)],
  ];
  head.facts.replaceChildren(...facts.filter(Boolean).map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value))));
  head.cancel.hidden = !["queued", "running"].includes(job.status);
  head.rerun.hidden = !job.next;
  head.save.hidden = head.remove.hidden = live;
  if (focused?.hidden) $("job-title").focus();
}

async function act(what) {
  try {
    await what(open.id);
  } catch (problem) {
    if (problem instanceof Problem) say(problem.message, true);
    else if (problem.name !== "AbortError") throw problem;
  }
}

async function cancel(id) {
  apply(await (await call("POST", `/v1/batch/${id}/cancel`)).json());
  if (open?.id === id && !jobs.get(id).settled) say("Cancelled. What is in flight is still stored.");
}

async function rerun(id) {
  const job = await (await call("POST", `/v1/batch/${id}/rerun`)).json();
  apply(job);
  go(job.id, job.id === id ? "Nothing is left to fetch." : "Running again: what was done is carried over.");
}

async function save(id) {
  const answer = await call("GET", `/v1/batch/${id}/results`, { headers: { accept: "application/jsonl" } });
  const href = URL.createObjectURL(await answer.blob());
  h("a", { href, download: `${id}.jsonl` }).click();
  setTimeout(() => URL.revokeObjectURL(href), 60_000);
}

async function remove(id) {
  const job = jobs.get(id);
  $("sure-text").textContent = `${count(job.targets.total, "target")} with their results (${size(job.stored_bytes)}) go for good. Job ${id}.`;
  $("sure").returnValue = "";
  $("sure").showModal();
  await new Promise((resolve) => $("sure").addEventListener("close", resolve, { once: true }));
  if ($("sure").returnValue !== "yes") return;
  await call("DELETE", `/v1/batch/${id}`);
  order = order.filter((other) => other !== id);
  jobs.delete(id);
  limitsAt = 0;
  drawList();
  go("", "The job was deleted.");
  refresh();
}

async function openJob(id) {
  if (open?.id === id) return;
  open = { id, targets: new Map(), next: null, idx: null, marking: false };
  $("targets-filter").value = "";
  $("target-list").replaceChildren();
  $("job-title").textContent = `Job ${id}`;
  const mine = open, known = jobs.get(id) ?? { id };
  head.bar = bar(known);
  $("job-head").replaceChildren(head.state, head.why, head.bar, head.facts, h("p", { className: "actions" }, head.cancel, head.rerun, head.save, head.remove));
  await look(id);
  if (open === mine) await loadTargets();
}

async function loadTargets(more = false) {
  const mine = open, filter = $("targets-filter").value, query = new URLSearchParams({ limit: 100 });
  if (filter) query.set("status", filter);
  if (more) query.set("cursor", open.next);
  const page = await (await call("GET", `/v1/batch/${open.id}/targets?${query}`)).json();
  if (open !== mine || filter !== $("targets-filter").value) return;
  open.next = page.next_cursor;
  if (!more) $("target-list").replaceChildren();
  page.items.forEach((target) => putTarget(target, true));
  $("more-targets").hidden = !open.next;
  $("no-targets").hidden = $("target-list").childElementCount > 0;
  if (more) say(`${count($("target-list").childElementCount, "target")} shown.`);
}

const ended = (target) => target.status === "done" || target.status === "failed";
const rowOf = (idx) => $(`t${idx}`);

// A target as a page or an event tells it; one that is finished never goes back.
function putTarget(target, listed = false) {
  const known = open.targets.get(target.idx), filter = $("targets-filter").value;
  if (known && ended(known) && !ended(target)) target = known;
  open.targets.set(target.idx, target);
  let row = rowOf(target.idx);
  if (!row) {
    const list = $("target-list"), last = list.lastChild;
    const within = !open.next || (last && target.idx < last.idx);
    if (!listed && (!within || (filter && filter !== target.status))) return;
    row = h("li", { id: `t${target.idx}` }, h("span", { className: "idx" }, `${target.idx}`),
      h("a", { className: "url", href: `#/${open.id}/${target.idx}` }, target.url), h("span", { className: "end" }), h("p", { className: "note" }));
    row.idx = target.idx;
    let after = last;
    while (after && after.idx > target.idx) after = after.previousSibling;
    if (after) after.after(row);
    else list.prepend(row);
    $("no-targets").hidden = true;
  }
  const [, , end, note] = row.children;
  end.replaceChildren(target.chars ? `${number.format(target.chars)} characters` : "", state(target.status));
  note.replaceChildren(...told(target));
  if (open.idx === target.idx && !open.read && ended(target)) openTarget(target.idx);
}

const told = (target) => {
  const parts = [target.error || (target.code && target.status !== "pending" ? "" : target.hint), target.error && target.hint].filter(Boolean);
  return [...parts.map((part, nth) => h("span", { className: nth || !target.error ? "" : "fail" }, part)), ...(target.code ? [h("code", {}, target.code)] : [])];
};

// Events tell which targets have finished; which are being fetched is asked, once a second at most.
async function markRunning() {
  if (open.marking || jobs.get(open.id).settled) return;
  open.marking = true;
  const mine = open;
  try {
    const page = await (await call("GET", `/v1/batch/${open.id}/targets?status=running&limit=20`)).json();
    if (open === mine) page.items.forEach((target) => rowOf(target.idx) && putTarget(target));
  } catch { /* the next event asks again */ }
  setTimeout(() => (mine.marking = false), 1000);
}

// ---- one target

async function openTarget(idx) {
  const { id } = open, mine = open, total = jobs.get(id).targets.total;
  Object.assign(open, { idx, read: false });
  document.title = `Target ${idx} · Job ${id} · sift-batch`;
  const link = (to, text) => (to >= 0 && to < total ? h("a", { href: `#/${id}/${to}` }, text) : "");
  document.querySelector(".around").replaceChildren(h("a", { href: `#/${id}` }, "← Job"), link(idx - 1, "Previous target"), link(idx + 1, "Next target"));
  const path = `/v1/batch/${id}/targets/${idx}?max_chars=${PART}&offset=`;
  let target;
  try {
    target = await (await call("GET", `${path}0`)).json();
  } catch (problem) {
    if (problem.view?.code !== "not_finished" || open !== mine) throw problem;
    $("target-title").textContent = open.targets.get(idx)?.url ?? `Target ${idx}`;
    $("target-body").replaceChildren(h("p", { className: "card empty" }, "Not fetched yet. The result is shown as soon as it is there."));
    return;
  }
  if (open !== mine || open.idx !== idx) return;
  open.read = true;
  $("target-title").textContent = target.url;
  const { content, meta } = target.result ?? { content: "", meta: {} };
  const text = h("pre", { className: "content", dir: "auto" }, content), shown = h("p", { className: "help" });
  const more = h("button", { className: "more", type: "button" }, "Read on");
  const tell = (next) => {
    more.hidden = next == null;
    shown.textContent = next == null ? "" : `The first ${number.format(next)} of ${count(target.chars, "character")}`;
    more.onclick = async () => {
      more.disabled = true;
      await act(async () => {
        const part = await (await call("GET", path + next)).json();
        text.append(part.result.content);
        tell(part.next_offset);
        if (part.next_offset == null) say("The text is complete.");
      });
      more.disabled = false;
    };
  };
  tell(target.next_offset);
  const facts = Object.entries(meta).map(([name, value]) =>
    h("div", {}, h("dt", {}, name), h("dd", {}, (typeof value === "string" ? value : JSON.stringify(value)).slice(0, 2000))));
  $("target-body").replaceChildren(h("div", { className: "card" },
    h("p", { className: "lead" }, state(target.status), target.chars ? ` ${count(target.chars, "character")}` : "", target.status === "failed" ? ` HTTP status ${target.http_status}` : ""),
    h("p", { className: "note" }, ...told(target)),
    facts.length ? h("details", {}, h("summary", {}, "About this result"), h("dl", {}, ...facts)) : "",
    target.result && (content ? text : h("p", { className: "empty" }, "The result is empty.")), shown, more));
}

// ---- pages

function show(name) {
  for (const section of document.querySelectorAll("main > section")) section.hidden = section.id !== name;
  $("forget").hidden = !key;
}

function showMissing({ status, view, message }) {
  const [title, text] =
    status === 410 ? ["This job is gone", `${GONE[view.reason] ?? ""} Send its targets again if they are still wanted.`]
    : view.code === "unknown_target" ? ["There is no such target", "The job has fewer."]
    : status === 404 ? ["There is no such job", "It never was, or it is not yours."]
    : ["This can’t be shown now", message];
  $("missing-title").textContent = title;
  $("missing").children[1].textContent = text;
  document.title = `${title} · sift-batch`;
  open = null;
  show("missing");
  $("missing-title").focus();
}

let message = "";

function go(id, text) {
  message = text;
  if (location.hash === `#/${id}`) route();
  else location.hash = `#/${id}`;
}

async function route() {
  say(message);
  message = "";
  if (!key) {
    document.title = "Sign in · sift-batch";
    show("sign-in");
    return $("key").focus();
  }
  const [, id, idx] = /^#\/([\w-]+)(?:\/(\d{1,9}))?$/.exec(location.hash) ?? [];
  const from = open?.id === id ? open?.idx : null;
  if (!id) {
    open = null;
    document.title = "Jobs · sift-batch";
    show("jobs");
    return $("jobs-title").focus();
  }
  try {
    await openJob(id);
    if (open?.id !== id) return;
    open.idx = null;
    if (idx != null) await openTarget(+idx);
    else drawHead();
    if (open?.id !== id || (idx != null && open.idx !== +idx)) return;
    show(idx == null ? "job" : "target");
    ((idx == null && rowOf(from)?.querySelector("a")) || $(idx == null ? "job-title" : "target-title")).focus();
    follow();
  } catch (problem) {
    if (problem instanceof Problem && key) showMissing(problem);
    else if (problem.name !== "AbortError") throw problem;
  }
}

function signOut(text = "") {
  key = "";
  sessionStorage.removeItem(KEY);
  session.abort();
  session = new AbortController();
  clearTimeout(timer);
  turn += 1;
  for (const known of [jobs, versions, rows, streams]) known.clear();
  for (const id of ["job-list", "target-list", "target-body", "job-head"]) $(id).replaceChildren();
  [order, nextJobs, limits, open, limitsAt, failures] = [[], null, null, null, 0, 0];
  samples.length = 0;
  trouble("");
  $("key-wrong").textContent = text;
  $("key").setAttribute("aria-invalid", Boolean(text));
  location.hash = "#/";
  route();
}

async function signIn(event) {
  event.preventDefault();
  const typed = $("key").value.trim(), wrong = (text) => {
    $("key-wrong").textContent = text;
    $("key").setAttribute("aria-invalid", true);
    $("key").focus();
  };
  if (!/^[\w-]{16,256}$/.test(typed)) return wrong("A key has 16 letters and digits or more, and no spaces.");
  try {
    const answer = await call("GET", "/v1/limits", { headers: { authorization: `Bearer ${typed}` } });
    limits = await answer.json();
  } catch (problem) {
    if (!(problem instanceof Problem)) throw problem;
    return wrong(problem.status === 401 || problem.view.code === "auth_failures" ? wrongKey(problem) : problem.message);
  }
  key = typed;
  sessionStorage.setItem(KEY, key);
  $("key").value = $("key-wrong").textContent = "";
  $("key").removeAttribute("aria-invalid");
  await refresh();
  route();
}

async function start(event) {
  event.preventDefault();
  const lines = $("urls").value.split("\n").map((line, nth) => ({ url: line.trim(), nth: nth + 1 })).filter((line) => line.url);
  const wrong = $("urls-wrong");
  wrong.textContent = lines.length ? "" : "Put at least one URL here.";
  if (!lines.length) return $("urls").focus();
  try {
    const body = { targets: lines.map((line) => line.url), ...($("anew").checked ? { max_age: 0 } : {}) };
    const answer = await call("POST", "/v1/batch", { body });
    const job = await answer.json();
    apply(job);
    event.target.reset();
    $("new").open = false;
    go(job.id, answer.headers.has("idempotent-replayed") ? "You have the same list already: this is its job." : "Started.");
    refresh();
  } catch (problem) {
    if (!(problem instanceof Problem)) throw problem;
    const place = ({ pointer, detail }) => `Line ${lines[/\d+/.exec(pointer)]?.nth ?? "?"}: ${detail}`;
    wrong.textContent = [problem.message, ...(problem.view.errors ?? []).map(place)].join("\n");
    $("urls").focus();
  }
}

const busy = (button, work) => async () => {
  button.disabled = true;
  await act(work);
  button.disabled = false;
};

$("sign-in").querySelector("form").onsubmit = signIn;
$("new").querySelector("form").onsubmit = start;
$("forget").onclick = () => signOut();
$("trouble").lastElementChild.onclick = refresh;
$("jobs-filter").onchange = () => { order = []; refresh(); };
$("targets-filter").onchange = () => act(() => loadTargets());
$("more-targets").onclick = busy($("more-targets"), () => loadTargets(true));
$("more-jobs").onclick = busy($("more-jobs"), async () => {
  const { items, next_cursor } = await listed(nextJobs);
  nextJobs = next_cursor;
  order.push(...items.map((job) => job.id).filter((id) => !order.includes(id)));
  items.forEach(apply);
  drawList();
  say(`${count(order.length, "job")} shown.`);
});
addEventListener("hashchange", route);
addEventListener("visibilitychange", () => key && !document.hidden && refresh());
setInterval(() => !document.hidden && samples.some(([, n]) => n) && drawTiles(), 2000);

if (key) await refresh();
trouble("");
route();
