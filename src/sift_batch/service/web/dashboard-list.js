// Which jobs are there, and how much is used? The first page: figures, slots over time, the list.

import { Problem, read } from "/?dashboard-service.js";
import { finished, jobs, list, live, on, readOlder, refresh, used } from "/?dashboard-jobs.js";
import { $, act, bar, count, h, number, say, setBar, size, span, time, WAITING } from "/?dashboard-page.js";

const WINDOW = 300; // seconds of the graph
const LONGEST = 120; // characters of a URL in the list
const rows = new Map();
const samples = []; // [time, slots] at each change

export function clear() {
  for (const known of [rows, firsts, inView]) known.clear();
  samples.length = 0;
  $("job-list").replaceChildren();
  $("jobs-filter").value = "";
}

// ---- the list: rows stay where they are, so that no focus is lost when they change

function drawList() {
  $("job-list").hidden = !list.ids.length;
  $("no-jobs").hidden = list.ids.length > 0;
  $("no-jobs").textContent = list.status
    ? "No job is in this state."
    : "No jobs yet. Start one under “New job” above, or send one to the API.";
  $("more-jobs").hidden = !list.next;
  for (const [id, row] of rows)
    if (!list.ids.includes(id)) {
      eye.unobserve(row);
      inView.delete(id);
      row.remove();
      rows.delete(id);
    }
  list.ids.forEach((id, at) => {
    if (!rows.has(id)) rows.set(id, makeRow(id));
    drawRow(jobs.get(id));
    const there = $("job-list").children[at];
    if (rows.get(id) !== there) $("job-list").insertBefore(rows.get(id), there ?? null);
  });
  drawUse();
  readFirsts();
}

function makeRow(id) {
  const link = h("a", { href: `#/${id}` }, ...nameOf(id));
  const row = h("li", { className: "job-row" }, link, h("span"), bar(id), h("p", { className: "note" }));
  row.job = id;
  eye.observe(row);
  return row;
}

// What tells a job from others is what it fetches; its id comes after that.
function nameOf(id) {
  const url = firsts.get(id),
    others = jobs.get(id).targets.total - 1;
  return [
    ...(url ? [h("span", { className: "url" }, url.length > LONGEST ? `${url.slice(0, LONGEST)}…` : url), " "] : []),
    ...(url && others ? [h("span", { className: "others" }, `and ${number(others)} more`), " "] : []),
    h("span", { className: "id" }, id),
  ];
}

function drawRow(job) {
  if (!rows.has(job.id)) return;
  const [, status, progress, note] = rows.get(job.id).children,
    { total, failed } = job.targets;
  status.className = `state ${job.status}`;
  status.textContent = job.status;
  setBar(progress, job);
  const notes = [
    [time(job.created_at)],
    [`${finished(job)} of ${count(total, "target")}`],
    failed && [`${failed} failed`, "fail"],
    job.settled && [size(job.stored_bytes)],
    !job.settled && job.eta_seconds != null && [`about ${span(job.eta_seconds)} left`],
    job.waiting && [WAITING[job.waiting.reason], "why"],
  ];
  note.replaceChildren(...notes.filter(Boolean).map(([text, className = ""]) => h("span", { className }, text)));
}

// ---- first URLs: the list has none, so one is read when its row comes into view; one at a time, each once

const firsts = new Map(); // by job; "" where there is none
const inView = new Set();
let reading = false;

const eye = new IntersectionObserver((entries) => {
  for (const { target, isIntersecting } of entries) inView[isIntersecting ? "add" : "delete"](target.job);
  readFirsts();
});

async function readFirsts() {
  if (reading) return;
  reading = true;
  let id;
  try {
    while ((id = [...inView].find((job) => rows.has(job) && !firsts.has(job)))) {
      const { items } = await read(`/v1/batch/${id}/targets?limit=1`);
      if (!rows.has(id)) continue;
      firsts.set(id, items[0]?.url ?? "");
      rows.get(id).firstChild.replaceChildren(...nameOf(id));
    }
  } catch (problem) {
    // What is gone is not asked for again; all else is, when the list is read the next time.
    if (problem.status === 404 || problem.status === 410) firsts.set(id, "");
    else if (!(problem instanceof Problem) && problem.name !== "AbortError") throw problem;
  } finally {
    reading = false;
  }
}

// ---- what is used

function drawUse() {
  // A target that waits is marked as running too, but holds no slot.
  const slots = live().reduce((sum, job) => sum + (job.waiting ? 0 : job.targets.running), 0);
  drawGraph(slots);
  if (!used.limits) return;
  const { jobs_per_caller, gate, stored_bytes, ttl_seconds } = used.limits;
  const left = live().reduce((sum, job) => sum + job.targets.total - finished(job), 0);
  figure(
    "live",
    live().length,
    `of ${jobs_per_caller}`,
    left ? `${count(left, "target")} to go` : "nothing is being fetched",
  );
  figure(
    "stored",
    size(stored_bytes),
    "",
    ttl_seconds ? `each job is kept for ${span(ttl_seconds)} after it was last read` : "",
  );
  figure("slots", slots, `of ${gate.total}`, `at most ${gate.per_host} for one site`);
}

function figure(id, value, of, help) {
  $(id).replaceChildren(`${value} `, h("small", {}, of));
  $(`${id}-help`).textContent = help;
}

function drawGraph(slots) {
  const now = Date.now() / 1000;
  if (samples.at(-1)?.[1] !== slots) samples.push([now, slots]);
  while (samples[1]?.[0] < now - WINDOW) samples.shift();
  const peak = Math.max(...samples.map(([, n]) => n));
  const x = (at) => Math.max(0, 300 - ((now - at) * 300) / WINDOW).toFixed(1);
  const y = (n) => (59 - (56 * n) / Math.max(4, peak)).toFixed(1);
  const [[begin, n], ...steps] = samples;
  const path = `${x(begin)} ${y(n)}${steps.map(([at, n]) => `H${x(at)}V${y(n)}`).join("")}H300`;
  $("line").setAttribute("d", `M${path}`);
  $("area").setAttribute("d", `M${path}V60H${x(begin)}Z`);
  $("graph-title").textContent = `Slots that your jobs used in the last 5 minutes: now ${slots}, at most ${peak}`;
}

// ----

on("list", drawList);
on("limits", drawUse);
on("job", (job) => {
  drawRow(job);
  drawUse();
});
setInterval(() => !document.hidden && samples.some(([, n]) => n) && drawUse(), 2000);
$("jobs-filter").onchange = () => {
  Object.assign(list, { ids: [], status: $("jobs-filter").value });
  refresh();
};
$("more-jobs").onclick = act(async () => {
  await readOlder();
  say(`${count(list.ids.length, "job")} shown.`);
});
