// How is a job started from the page? The form: a target on each line, options for all, what is wrong by its line.

import { call, Problem } from "/?dashboard-service.js";
import { apply, refresh } from "/?dashboard-jobs.js";
import { $, go, told } from "/?dashboard-page.js";

const OPTIONS = ["mode", "question", "pages", "grep", "jq", "context", "recover"];
const FORMAL = ["type", "too_long", "length", "missing", "unknown_field"]; // these don't name what they are about

// A line is what `sift-batch submit --file` takes: a URL, or a JSON object with it and options of its own.
function parse(text) {
  if (/^["[]/.test(text)) return { wrong: "a line is a URL or a JSON object" };
  if (text[0] !== "{") return { target: text };
  let entry;
  try {
    entry = JSON.parse(text);
  } catch {
    return { wrong: "the line is no valid JSON" };
  }
  const { url, options = {}, ...others } = entry;
  const names = Object.keys(others),
    misplaced = names.filter((name) => OPTIONS.includes(name)).map((name) => `"${name}"`);
  if (typeof url !== "string") return { wrong: 'the JSON object has no "url" that is a string' };
  if (typeof options !== "object" || !options || Array.isArray(options))
    return { wrong: '"options" is no JSON object' };
  if (misplaced.length) return { wrong: `put ${misplaced.join(" and ")} into "options"` };
  return { target: { url, options }, more: names.length > 0 };
}

const readLines = () =>
  $("urls")
    .value.split("\n")
    .map((line, at) => ({ text: line.trim(), at: at + 1 }))
    .filter(({ text }) => text && text[0] !== "#")
    .map(({ text, at }) => ({ at, ...parse(text) }));

function optionsOfAll() {
  const chosen = { mode: $("mode").value, question: $("question").value.trim(), recover: $("recover").checked };
  const given = Object.entries(chosen).filter(([, value]) => value);
  return given.length > 0 && { options: Object.fromEntries(given) };
}

// An error of the service, with its line or, if it is about an option of all, its field.
function faultOf({ pointer, code, detail }, lines) {
  const [, n, part, name] = /^(?:\/targets\/(\d+))?(?:\/(\w+)(?:\/(.+))?)?/.exec(pointer);
  if (n) return { at: lines[n]?.at, wrong: FORMAL.includes(code) && part ? `${name ?? part}: ${detail}` : detail };
  return { field: name, wrong: `${name ?? part}: ${detail}` };
}

function tell(said, faults = []) {
  const found = new Map();
  for (const { at, wrong } of faults) found.set(wrong, [...(found.get(wrong) ?? []), ...(at ? [at] : [])]);
  const place = (at) => (at.length ? `Line${at.length > 1 ? "s" : ""} ${at.join(", ")}: ` : "");
  $("urls-wrong").replaceChildren(...said, ...[...found].map(([wrong, at]) => `\n${place(at)}${wrong}`));
  const field = faults[0]?.field;
  $(OPTIONS.includes(field) ? field : "urls").focus();
}

async function start(event) {
  event.preventDefault();
  const form = event.target,
    lines = readLines(),
    bad = lines.filter(({ wrong }) => wrong);
  if (bad.length) return tell(["Not started; this is wrong:"], bad);
  if (!lines.length) return tell(["Put at least one URL here."]);
  $("urls-wrong").replaceChildren();
  const targets = lines.map(({ target }) => target);
  try {
    const body = { targets, ...optionsOfAll(), ...($("anew").checked && { max_age: 0 }) };
    const answer = await call("POST", "/v1/batch", { body });
    const job = await answer.json();
    const known = answer.headers.has("idempotent-replayed");
    form.reset();
    $("new").open = false;
    apply(job);
    go(
      job.id,
      (known ? "You have the same list already: this is its job." : "Started.") +
        (lines.some(({ more }) => more) ? ' Other keys of a line than "url" and "options" were not sent.' : ""),
    );
    refresh();
  } catch (problem) {
    if (!(problem instanceof Problem)) throw problem;
    const errors = problem.view.errors ?? [];
    tell(
      told(problem),
      errors.map((error) => faultOf(error, lines)),
    );
  }
}

export function clear() {
  $("new").querySelector("form").reset();
  $("new").open = false;
  $("urls-wrong").replaceChildren();
}

$("new").querySelector("form").onsubmit = start;
