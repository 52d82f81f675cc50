// Which page is shown, and to whom? Signing in and out, the addresses behind the `#`, and what is told when
// the service can't be reached. The parts: `-service` asks, `-jobs` knows, `-list`, `-new`, `-job` and `-target` show, `-page` draws.

import { call, hasKey, hooks, Problem, useKey } from "/?dashboard-service.js";
import { follow, forget, on, refresh } from "/?dashboard-jobs.js";
import { $, say, sayMessage, show, span } from "/?dashboard-page.js";
import { clear } from "/?dashboard-list.js";
import { clear as clearForm } from "/?dashboard-new.js";
import { close, openJob } from "/?dashboard-job.js";

const TROUBLE = {
  unreachable: "The service can't be reached. Trying again shortly; what is shown may be old.",
  unavailable: "The service can't use its store at the moment. Nothing is lost; trying again shortly.",
  stopping: "The service is stopping. This page connects again when it is back.",
};
const GONE = {
  ttl: "Nobody had read it for as long as jobs are kept.",
  budget: "It made room for newer jobs.",
  deleted: "It was deleted.",
};

// ---- addresses: `#/` is the list, `#/ID` a job, `#/ID/3` a target

async function route() {
  sayMessage();
  $("forget").hidden = !hasKey();
  if (!hasKey()) return show("sign-in", "Sign in", $("key"));
  const [, id, idx] = /^#\/([\w-]+)(?:\/(\d{1,9}))?$/.exec(location.hash) ?? [];
  if (!id) {
    close();
    return show("jobs", "Jobs");
  }
  try {
    await openJob(id, idx == null ? null : Number(idx));
  } catch (problem) {
    if (problem instanceof Problem && hasKey()) showMissing(problem);
    else if (problem.name !== "AbortError" && hasKey()) throw problem;
  }
}

function showMissing({ status, view, message }) {
  let found = ["This can't be shown now", message];
  if (status === 410)
    found = ["This job is gone", `${GONE[view.reason] ?? ""} Send its targets again if they are still wanted.`];
  else if (view.code === "unknown_target") found = ["There is no such target", "The job has fewer."];
  else if (status === 404) found = ["There is no such job", "It never was, or it is not yours."];
  [$("missing-title").textContent, $("missing-text").textContent] = found;
  close();
  show("missing", found[0]);
}

function showTrouble(kind) {
  const text = TROUBLE[kind] ?? "",
    said = $("trouble-text");
  if (said.textContent !== text) said.textContent = text;
  $("trouble").hidden = !text;
  if (text) say("");
  $("link").className = text ? "" : "live";
  $("link").textContent = text ? "Not connected" : "Live";
  $("link").hidden = !hasKey();
}

// ---- the key

function signOut(problem) {
  useKey("");
  close();
  forget();
  clear();
  clearForm();
  for (const id of ["target-list", "target-body", "job-head", "job-title", "target-title"]) $(id).replaceChildren();
  showTrouble("");
  tellKey(problem ? wrongKey(problem) : "");
  history.replaceState(null, "", "#/");
  route();
}

const wrongKey = ({ status, view }) =>
  status === 429
    ? `This is not a valid key, and too many such were tried. Wait ${span(view.retry_after ?? 60)} before the next one.`
    : "The service does not know this key, or knows it no more.";

function tellKey(text) {
  $("key-wrong").textContent = text;
  $("key").setAttribute("aria-invalid", text !== "");
  if (text) $("key").focus();
}

async function signIn(event) {
  event.preventDefault();
  const typed = $("key").value.trim();
  if (!/^[\w-]{16,256}$/.test(typed)) return tellKey("A key has 16 letters and digits or more, and no spaces.");
  try {
    await call("GET", "/v1/limits", { headers: { authorization: `Bearer ${typed}` } });
  } catch (problem) {
    if (!(problem instanceof Problem)) throw problem;
    return tellKey(problem.unknownKey ? wrongKey(problem) : problem.message);
  }
  $("key").value = "";
  tellKey("");
  useKey(typed);
  await begin();
}

async function begin() {
  showTrouble("");
  if (hasKey()) await refresh();
  await route();
}

// ----

hooks.refused = signOut;
on("trouble", showTrouble);
on("lost", (id, problem) => location.hash.startsWith(`#/${id}`) && showMissing(problem));
$("sign-in").querySelector("form").onsubmit = signIn;
$("forget").onclick = () => signOut();
$("try").onclick = refresh;
addEventListener("hashchange", route);
addEventListener("visibilitychange", () => {
  if (!hasKey()) return;
  follow();
  if (!document.hidden) refresh();
});
await begin();
