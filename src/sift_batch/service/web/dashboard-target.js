// What did one target give? Its content as text, a part at a time, or what went wrong.

import { read } from "/?dashboard-service.js";
import { act, count, facts, h, number, say, state } from "/?dashboard-page.js";

const PART = 20_000; // characters of a result that are read at once

export const notes = ({ error, hint, code }) => [
  ...(error ? [h("span", { className: "fail" }, error)] : []),
  ...(hint ? [h("span", {}, hint)] : []),
  ...(code ? [h("code", {}, code)] : []),
];

/** Read a part of a target; null if it is not finished yet. */
export async function readPart(id, idx, offset) {
  try {
    return await read(`/v1/batch/${id}/targets/${idx}?max_chars=${PART}&offset=${offset}`);
  } catch (problem) {
    if (problem.view?.code === "not_finished") return null;
    throw problem;
  }
}

export function drawTarget(id, target) {
  const { content, meta } = target.result ?? { meta: {} };
  const about = facts(
    Object.entries(meta).map(([name, value]) => [
      name,
      (typeof value === "string" ? value : JSON.stringify(value)).slice(0, 2000),
    ]),
  );
  const [copy, ...shown] = content ? drawContent(id, target) : [null];
  return [
    h(
      "p",
      { className: "lead" },
      state(target.status),
      target.chars ? count(target.chars, "character") : "",
    ),
    h("p", { className: "note" }, ...notes(target)),
    h("p", { className: "actions" }, copy, linkTo(target.url)),
    about.length && h("details", {}, h("summary", {}, "About this result"), h("dl", {}, ...about)),
    ...(target.result && !content ? [h("p", { className: "empty" }, "The result is empty.")] : []),
    ...shown,
  ].filter(Boolean);
}

// The site is not told where its visitor comes from, and its page can't reach this one.
const linkTo = (url) =>
  /^https?:/i.test(url) && h("a", { href: url, target: "_blank", rel: "noreferrer noopener" }, "Open the page");

function drawContent(id, target) {
  const text = h("pre", { className: "content", dir: "auto" }, target.result.content),
    shown = h("p", { className: "help" });
  const more = h("button", { className: "more", type: "button" }, "Read on");
  const tell = (next) => {
    more.hidden = next == null;
    shown.textContent = next == null ? "" : `The first ${number(next)} of ${count(target.chars, "character")}`;
    more.onclick = act(async () => {
      const part = await readPart(id, target.idx, next);
      text.append(part.result.content);
      tell(part.next_offset);
      if (part.next_offset == null) say("The text is complete.");
    });
  };
  tell(target.next_offset);
  const copy = h("button", { className: "quiet", type: "button" }, "Copy text");
  copy.onclick = act(async () => {
    try {
      await navigator.clipboard.writeText(text.textContent);
      say(more.hidden ? "Copied." : `Copied: ${shown.textContent.toLowerCase()}.`);
    } catch {
      // On plain HTTP there is no clipboard, and a browser may refuse it elsewhere.
      getSelection().selectAllChildren(text);
      say("The text is selected: copy it as you copy elsewhere.");
    }
  });
  return [copy, text, shown, more];
}
