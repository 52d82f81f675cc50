// How do things look on the page? Elements, numbers and words that all parts of the dashboard use.
// Whatever comes from outside goes into the page as text, never as HTML: there is no other way in here.

import { finished } from "/?dashboard-jobs.js";

export const $ = (id) => document.getElementById(id);

export function h(name, members, ...children) {
  const made = document.createElement(name);
  for (const [member, value] of Object.entries(members ?? {})) {
    if (member in made) made[member] = value;
    else made.setAttribute(member, value);
  }
  made.append(...children.filter((child) => child || child === 0));
  return made;
}

// ---- words

export const WAITING = {
  queue: "Waiting for its turn: other jobs go first",
  gate: "Waiting for a free slot: all of them are in use",
  host: "Waiting for the site: it gets no more requests for now",
  retry_after: "Waiting as long as the site asked for",
  store: "Waiting for the store: it can't be written at the moment",
};

export const number = (n) => n.toLocaleString("en");
export const count = (n, what) => `${number(n)} ${what}${n === 1 ? "" : "s"}`;

export function span(seconds) {
  if (seconds < 90) return `${seconds < 10 ? Math.round(seconds * 10) / 10 : Math.round(seconds)} s`;
  return seconds < 5400 ? `${Math.round(seconds / 60)} min` : `${Math.round(seconds / 3600)} h`;
}

export function size(bytes) {
  const step = bytes < 1024 ? 0 : bytes < 2 ** 20 ? 1 : bytes < 2 ** 30 ? 2 : 3;
  return `${number(+(bytes / 1024 ** step).toFixed(step ? 1 : 0))} ${["bytes", "KiB", "MiB", "GiB"][step]}`;
}

export function time(text) {
  const at = new Date(text),
    today = at.toDateString() === new Date().toDateString();
  const style = { timeStyle: "medium", ...(!today && { dateStyle: "medium" }) };
  return h("time", { dateTime: text }, at.toLocaleString("en-GB", style));
}

export function outcome({ targets: { done, failed, pending } }) {
  return [`${done} done`, failed && `${failed} failed`, pending && `${pending} not fetched`].filter(Boolean).join(", ");
}

// ---- what jobs and targets are drawn with

export const facts = (pairs) =>
  pairs.filter(Boolean).map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value)));

export const state = (status) => h("span", { className: `state ${status}` }, status);

export function bar(id) {
  const shape = (name, members) => {
    const made = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [member, value] of Object.entries(members)) made.setAttribute(member, value);
    return made;
  };
  const svg = shape("svg", { viewBox: "0 0 100 1", preserveAspectRatio: "none", "aria-hidden": true });
  svg.append(...["done", "failed", "running"].map((part) => shape("rect", { class: part, height: 1 })));
  return h("div", { className: "bar", role: "progressbar", "aria-label": `Progress of job ${id}` }, svg);
}

export function setBar(drawn, job) {
  const { total, failed } = job.targets;
  let x = 0;
  for (const part of drawn.firstChild.children) {
    const width = (100 * job.targets[part.getAttribute("class")]) / total;
    part.setAttribute("x", x);
    part.setAttribute("width", width);
    x += width;
  }
  drawn.setAttribute("aria-valuemax", total);
  drawn.setAttribute("aria-valuenow", finished(job));
  drawn.setAttribute("aria-valuetext", `${finished(job)} of ${total} finished${failed ? `, ${failed} failed` : ""}`);
}

// ---- the page as a whole

export function say(text, bad = false) {
  $("say").className = bad ? "notice bad" : "notice";
  $("say").replaceChildren(...[text].flat());
}

/** What a problem says, with a link to the job that is in the way. */
export const told = ({ message, view }) => [
  message,
  ...(view.job_id ? [" ", h("a", { href: `#/${view.job_id}` }, "Open the live job")] : []),
];

export function show(section, title, focus = $(`${section}-title`)) {
  for (const other of document.querySelectorAll("main > section")) other.hidden = other.id !== section;
  document.title = `${title} · sift-batch`;
  focus.focus();
}

let message = "";

/** Go to a job, or to the list, and say something there. */
export function go(id, text) {
  message = text;
  if (location.hash === `#/${id}`) dispatchEvent(new Event("hashchange"));
  else location.hash = `#/${id}`;
}

export function sayMessage() {
  say(message);
  message = "";
}

/** What a button does: nothing twice at once, and it says what went wrong. */
export const act =
  (what) =>
  async ({ currentTarget: button }) => {
    if (button.ariaBusy === "true") return;
    // Not `disabled`: that would take the focus away from whoever uses the keyboard.
    button.ariaBusy = "true";
    try {
      await what();
    } catch (problem) {
      if ("view" in problem) say(told(problem), true);
      else if (problem.name !== "AbortError") throw problem;
    } finally {
      button.ariaBusy = null;
    }
  };
