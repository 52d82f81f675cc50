// How is one job, and each of its targets? The job's page; what a target gave is drawn by `dashboard-target`.

import { call, pause, read } from "/?dashboard-service.js";
import { apply, drop, finished, jobs, look, on, prefer, refresh } from "/?dashboard-jobs.js";
import { drawTarget, notes, readPart } from "/?dashboard-target.js";
import {
  $,
  act,
  bar,
  count,
  facts,
  go,
  h,
  outcome,
  say,
  setBar,
  show,
  size,
  span,
  state,
  time,
  WAITING,
} from "/?dashboard-page.js";

let open = null; // the opened job, and the index of the opened target; a new object for each opening
const path = (...parts) => ["/v1/batch", open.id, ...parts].join("/");

export function close() {
  open = null;
  prefer("");
}

/** Show a job, or one target of it. Raises `Problem`. */
export async function openJob(id, idx) {
  const from = open?.id === id ? open.idx : null;
  if (open?.id !== id) {
    open = { id, idx: null, targets: new Map(), next: null, listed: "", whole: false, marking: false, again: false };
    open.ready = begin(id);
  }
  const mine = open;
  await mine.ready;
  if (open !== mine) return;
  open.idx = idx;
  if (idx == null) {
    show("job", title(jobs.get(id)), rowOf(from)?.querySelector("a") ?? $("job-title"));
  } else if (await openTarget(idx)) {
    show("target", `Target ${idx} · Job ${id}`);
  }
}

async function begin(id) {
  const mine = open;
  $("targets-filter").value = "";
  $("target-list").replaceChildren();
  $("job-title").textContent = `Job ${id}`;
  head.bar = bar(id);
  $("job-head").replaceChildren(
    head.state,
    head.why,
    head.bar,
    head.facts,
    h("p", { className: "actions" }, ...Object.values(buttons)),
  );
  drawHead(await look(id));
  if (open === mine) await readTargets();
  if (open === mine) prefer(id);
}

// ---- the job

const head = { state: h("p", { className: "lead" }), why: h("p"), bar: null, facts: h("dl") };

const button = (text, className, what) =>
  h("button", { type: "button", className, onclick: act(() => what(open.id)) }, text);
const buttons = {
  cancel: button("Cancel", "quiet", cancel),
  rerun: button("Run again", "", rerun),
  save: button("Save results", "quiet", save),
  remove: button("Delete", "danger", remove),
};

const title = (job) => `${finished(job)} of ${job.targets.total} · Job ${job.id}`;

function drawHead(job) {
  const live = !job.settled,
    left = job.targets.total - finished(job),
    eta = live ? job.eta_seconds : null;
  if (!$("job").hidden) document.title = `${title(job)} · sift-batch`;
  head.state.replaceChildren(
    state(job.status),
    live ? `${finished(job)} of ${count(job.targets.total, "target")} finished` : outcome(job),
  );
  head.why.className = job.waiting ? "why" : "";
  head.why.replaceChildren(
    ...(job.waiting ? [`${WAITING[job.waiting.reason]}, since `, time(job.waiting.since)] : [sentence(inVain(job) ? VAIN : job.hint)]),
  );
  setBar(head.bar, job);
  head.facts.replaceChildren(
    ...facts([
      live && ["Time left", eta == null ? "not known yet" : `about ${span(eta)}`],
      eta != null && left > 0 && ["Pace", `about ${span(eta / left)} a target`],
      ["Submitted", time(job.created_at)],
      job.started_at && ["Started", time(job.started_at)],
      job.finished_at && ["Finished", time(job.finished_at)],
      job.expires_at && ["Kept until", time(job.expires_at)],
      ["Stored", size(job.stored_bytes)],
      job.rerun_of && ["Rerun of", h("a", { href: `#/${job.rerun_of}`, className: "id" }, job.rerun_of)],
    ]),
  );
  const focused = document.activeElement;
  buttons.cancel.hidden = !["queued", "running"].includes(job.status);
  buttons.rerun.hidden = !job.next;
  buttons.rerun.className = inVain(job) ? "quiet" : "";
  buttons.save.hidden = buttons.remove.hidden = live;
  if (focused?.hidden) $("job-title").focus();
}

// A list of jobs leaves open whether to run one again helps; its targets tell.
const VAIN = "What failed is not retryable: a rerun won't help";

function inVain({ settled, targets: { failed, pending } }) {
  const known = [...open.targets.values()].filter(({ status }) => status === "failed");
  return settled && failed > 0 && !pending && known.length === failed && !known.some(({ retryable }) => retryable);
}

const sentence = (text) => (text ? `${text[0].toUpperCase()}${text.slice(1)}.` : "");

async function cancel(id) {
  apply(await (await call("POST", path("cancel"))).json());
  if (!jobs.get(id)?.settled) say("Cancelled. What is in flight is still stored.");
}

async function rerun(id) {
  const job = await (await call("POST", path("rerun"))).json();
  apply(job);
  go(job.id, job.id === id ? "Nothing is left to fetch." : "Running again: what was done is carried over.");
  refresh();
}

async function save(id) {
  const answer = await call("GET", path("results"), { headers: { accept: "application/jsonl" } });
  const href = URL.createObjectURL(await answer.blob());
  h("a", { href, download: `${id}.jsonl` }).click();
  setTimeout(() => URL.revokeObjectURL(href), 60_000);
}

async function remove(id) {
  const { targets, stored_bytes } = jobs.get(id),
    sure = $("sure");
  $("sure-text").textContent = `${count(targets.total, "target")} and ${size(stored_bytes)} of results go for good.`;
  sure.returnValue = "";
  sure.showModal();
  await new Promise((resolve) => sure.addEventListener("close", resolve, { once: true }));
  if (sure.returnValue !== "yes") return;
  await call("DELETE", path());
  close();
  drop(id);
  go("", "The job was deleted.");
}

// ---- its targets

const ended = (target) => target.status === "done" || target.status === "failed";
const rowOf = (idx) => $(`t${idx}`);

async function readTargets(more = false) {
  const mine = open,
    status = $("targets-filter").value;
  const query = new URLSearchParams({ limit: 100, ...(status && { status }), ...(more && { cursor: open.next }) });
  const page = await read(`${path("targets")}?${query}`);
  if (open !== mine || status !== $("targets-filter").value) return;
  open.next = page.next_cursor;
  // Rows of the same list stay, and with them the focus.
  if (!more && (status || open.listed)) $("target-list").replaceChildren();
  open.listed = status;
  for (const target of page.items) put(target, true);
  $("more-targets").hidden = !open.next;
  $("no-targets").hidden = $("target-list").childElementCount > 0;
  drawHead(jobs.get(open.id));
  if (more) say(`${count($("target-list").childElementCount, "target")} shown.`);
}

// A target as a page or an event tells it; one that is finished never goes back.
function put(target, listed = false) {
  const known = open.targets.get(target.idx),
    last = $("target-list").lastChild,
    status = $("targets-filter").value;
  if (known && ended(known) && !ended(target)) target = known;
  open.targets.set(target.idx, target);
  const within = (!open.next || target.idx < last?.idx) && (!status || status === target.status);
  let row = rowOf(target.idx);
  if (!row && !listed && !within) return;
  if (!row) {
    row = makeRow(target);
    let before = last;
    while (before?.idx > target.idx) before = before.previousSibling;
    if (before) before.after(row);
    else $("target-list").prepend(row);
    $("no-targets").hidden = true;
  }
  const [, , end, note] = row.children;
  end.replaceChildren(target.chars ? count(target.chars, "character") : "", state(target.status));
  note.replaceChildren(...notes(target));
}

function makeRow({ idx, url }) {
  const link = h("a", { className: "url", href: `#/${open.id}/${idx}` }, url);
  const row = h(
    "li",
    { id: `t${idx}` },
    h("span", { className: "idx" }, idx),
    link,
    h("span", { className: "end" }),
    h("p", { className: "note" }),
  );
  row.idx = idx;
  return row;
}

// Events tell which targets have finished; which are being fetched is asked, once a second at most.
async function markRunning() {
  const mine = open;
  mine.again = mine.marking;
  if (mine.marking) return;
  mine.marking = true;
  const page = await read(`${path("targets")}?status=running&limit=20`).catch(() => ({ items: [] }));
  if (open === mine) for (const target of page.items) if (rowOf(target.idx)) put(target);
  await pause(1);
  mine.marking = false;
  if (mine.again && open === mine) markRunning();
}

// ---- one target

/** Read a target and draw its page; false if something else is open by then. */
async function openTarget(idx) {
  const mine = open,
    target = await readPart(open.id, idx, 0);
  if (open !== mine || open.idx !== idx) return false;
  open.whole = target !== null;
  const near = [
    [idx - 1, "Previous target"],
    [idx + 1, "Next target"],
  ].filter(([at]) => at >= 0 && at < jobs.get(open.id).targets.total);
  $("around").replaceChildren(
    h("a", { href: `#/${open.id}` }, "← Job"),
    ...near.map(([at, text]) => h("a", { href: `#/${open.id}/${at}` }, text)),
  );
  $("target-title").textContent = (target ?? open.targets.get(idx))?.url ?? `Target ${idx}`;
  $("target-body").replaceChildren(
    ...(target
      ? drawTarget(open.id, target)
      : [h("p", { className: "empty" }, "Not fetched yet. The result is shown as soon as it is there.")]),
  );
  return true;
}

// ----

on("job", (job, old) => {
  if (open?.id !== job.id) return;
  drawHead(job);
  if (!old || old.settled) return;
  if (job.settled) say(`The job has ended: ${outcome(job)}.`);
  else markRunning();
  if (job.settled) readTargets();
});
on("target", (id, target) => {
  if (open?.id !== id) return;
  put(target);
  if (open.idx === target.idx && !open.whole && ended(target)) openTarget(target.idx);
});
$("targets-filter").onchange = act(() => readTargets());
$("more-targets").onclick = act(() => readTargets(true));
