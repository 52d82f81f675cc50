"""Is what a step did right? Its answer and its rows, compared with the model.

Told of each step right after it was done, before anybody can have seen it. Next room: `sim_model.py`, the
rules themselves.
"""

from typing import Any, Final

from sim_model import Ledger, Page, Row
from sim_plan import Facts
from sim_watch import Watch

from sift_batch._model.lifecycle import JobEvent
from sift_batch._model.store import CallerBusy, Created, JobsBusy, Reused, UnknownJob, UnsettledJob

READS: Final = frozenset({"job", "status", "jobs", "gone", "lapsed"})
_AUDIT_EVERY: Final = 40
_JOB: Final = (
    "SELECT rowid, caller, caller_class, status, settled, error, targets_total, targets_done, "
    "targets_failed, version, created_at, started_at, finished_at, lease, nbytes, rerun_of "
    "FROM batch_job WHERE id = ?"
)
_PAGES: Final = (
    "SELECT url, options, status, nbytes, error, hint, code, http_status, retryable, chars, result "
    "FROM batch_target WHERE job_id = ? ORDER BY idx"
)


class Comparison:
    """The rows of one store beside the model of them."""

    def __init__(self, connection: Any, ledger: Ledger, watch: Watch, caps: Facts) -> None:
        self._connection = connection
        self._ledger = ledger
        self._watch = watch
        self._caps = (caps["jobs_per_caller"], caps["jobs_total"])
        self._steps = 0

    def compare(self, op: str, values: tuple[Any, ...], asked: Facts, answer: Any) -> Row | None:
        """Compare what an operation came to; return the job that it changed, if it may have changed one."""
        if op in READS:
            getattr(self, f"_read_{op}")(values, asked, answer)
            return None
        row = getattr(self, f"_step_{op}", self._step_other)(values, asked, answer)
        self._steps += 1
        if row is not None:
            self.check_row(op, row)
        if op == "acquire" or self._steps % _AUDIT_EVERY == 0:
            self.audit(op)
        return row

    def check_row(self, op: str, row: Row) -> None:
        """Compare one job with its rows."""
        found = self._connection.execute(_JOB, (row.id,)).fetchone()
        if row.id not in self._ledger.jobs:
            if found is not None or self._connection.execute(_PAGES, (row.id,)).fetchone() is not None:
                self._watch.wrong("rows.removed", f"after {op}, {self._label(row)} is still there")
            return
        expected = _job_row(row)
        if found != expected:
            self._watch.wrong("rows.job", f"after {op}, {self._label(row)} is {found} and must be {expected}")
        pages = self._connection.execute(_PAGES, (row.id,)).fetchall()
        wanted = [_page_row(page) for page in row.pages]
        if pages != wanted:
            idx = next(
                (n for n, pair in enumerate(zip(pages, wanted, strict=False)) if pair[0] != pair[1]), -1
            )
            text = f"{pages[idx][2:10]} and must be {wanted[idx][2:10]}" if pages else "missing"
            self._watch.wrong("rows.target", f"after {op}, target {idx} of {self._label(row)} is {text}")

    def audit(self, op: str) -> None:
        """Compare every job with its rows, and what is there with what must be."""
        ledger = self._ledger
        stored = {row[0] for row in self._connection.execute("SELECT id FROM batch_job")}
        stored |= {row[0] for row in self._connection.execute("SELECT DISTINCT job_id FROM batch_target")}
        if stored != ledger.jobs.keys():
            names = [self._watch.label(job_id) for job_id in stored ^ ledger.jobs.keys()]
            self._watch.wrong("rows.lost", f"after {op}, these jobs are lost or too many: {sorted(names)}")
        for row in ledger.jobs.values():
            if row.id in stored:
                self.check_row(op, row)

    def _label(self, row: Row) -> str:
        return self._watch.label(row.id)

    def _expect(self, op: str, answer: Any, expected: Any) -> None:
        if answer != expected:
            self._watch.wrong(f"store.{op}", f"{op} gave {answer!r} and must give {expected!r}")

    # ---- steps

    def _step_other(self, values: tuple[Any, ...], asked: Facts, answer: Any) -> None:
        return None

    def _step_acquire(self, values: tuple[Any, ...], asked: Facts, answer: Any) -> None:
        failed = self._ledger.restart(asked["now"])
        self._expect("acquire", [job.id for job in answer.failed], failed)
        self._expect("acquire", answer.stored_bytes, self._ledger.nbytes)

    def _step_submit(self, values: tuple[Any, ...], asked: Facts, answer: Any) -> Row | None:
        _, new = values
        now, caller = asked["now"], new.caller
        pages = [Page(target.url, _options(target)) for target in new.targets]
        for page in pages:
            page.nbytes = len(page.url.encode()) + len(page.options.encode())
        series = tuple((page.url, page.options) for page in pages)
        ledger = self._ledger
        expected = ledger.submit(caller.name, series, now, self._caps, asked["max_age"])
        self._expect("submit", _outcome(answer), expected)
        if expected[0] == "created":
            row = Row(
                new.id, caller.name, caller.caller_class.value, self._rowid(new.id), series, pages, now, now
            )
            ledger.jobs[row.id] = row
            return row
        return ledger.jobs[expected[1]] if expected[0] == "reused" else None

    def _step_rerun(self, values: tuple[Any, ...], asked: Facts, answer: Any) -> Row | None:
        _, new_id, source_id = values
        now, caller, ledger = asked["now"], asked["caller"], self._ledger
        expected = ledger.rerun(source_id, caller.name, now, self._caps)
        self._expect("rerun", _outcome(answer), expected)
        if expected[0] != "created":
            return None
        row = Row(new_id, caller.name, caller.caller_class.value, self._rowid(new_id), None, [], now, now)
        ledger.rerun_of(ledger.jobs[source_id], row, now)
        ledger.jobs[row.id] = row
        return row

    def _step_begin(self, values: tuple[Any, ...], asked: Facts, answer: Any) -> Row | None:
        row = self._ledger.begin(asked["now"])
        self._expect("begin", None if answer is None else answer.job.id, None if row is None else row.id)
        if row is not None and answer is not None:
            wanted = [
                (idx, page.url) for idx, page in enumerate(row.pages) if page.status not in ("done", "failed")
            ]
            self._expect("begin", [(idx, target.url) for idx, target in answer.targets], wanted)
        return row

    def _step_record(self, values: tuple[Any, ...], asked: Facts, answer: Any) -> Row | None:
        _, job_id, idx, outcome = values
        ledger = self._ledger
        before = ledger.jobs.get(job_id)
        ended = before is not None and before.live
        row = ledger.record(before, idx, outcome, asked["now"])
        self._expect("record", answer is None, row is None)
        if row is not None and answer is not None:
            settled = answer.job is not None
            self._expect("record", (settled, answer.ended), (bool(row.settled), bool(row.settled) and ended))
        return row

    def _step_stop(self, values: tuple[Any, ...], asked: Facts, answer: Any) -> Row | None:
        _, job_id, event = values
        status = "cancelled" if event is JobEvent.CANCEL else "failed"
        ledger = self._ledger
        row = ledger.stop(
            ledger.jobs.get(job_id),
            status,
            asked["caller"],
            asked["now"],
            asked["in_flight"],
            asked.get("error", ""),
        )
        return self._same_job("stop", row, answer)

    def _step_settle(self, values: tuple[Any, ...], asked: Facts, answer: Any) -> Row | None:
        ledger = self._ledger
        return self._same_job("settle", ledger.settle(ledger.jobs.get(values[1]), asked["now"]), answer)

    def _step_touch(self, values: tuple[Any, ...], asked: Facts, answer: Any) -> Row | None:
        ledger = self._ledger
        row = ledger.jobs.get(values[1])
        self._expect("touch", answer, ledger.touch(row, asked["caller"], asked["now"]))
        return row

    def _step_delete(self, values: tuple[Any, ...], asked: Facts, answer: Any) -> Row | None:
        ledger = self._ledger
        row = ledger.delete(ledger.jobs.get(values[1]), asked["caller"], asked["now"])
        return self._removed("delete", row, answer)

    def _step_sweep(self, values: tuple[Any, ...], asked: Facts, answer: Any) -> Row | None:
        ledger = self._ledger
        before = ledger.jobs.get(values[1])
        self._removed("sweep", ledger.sweep(before, asked["now"]), answer)
        return before

    def _step_evict(self, values: tuple[Any, ...], asked: Facts, answer: Any) -> Row | None:
        row = self._ledger.evict(asked["max_bytes"], asked["now"])
        return self._removed("evict", row, answer)

    def _removed(self, op: str, row: Row | None, answer: Any) -> Row | None:
        found = None if answer is None else (answer.job_id, answer.nbytes, answer.restricted)
        wanted = None if row is None else (row.id, row.nbytes, row.caller_class == "restricted")
        self._expect(op, found, wanted)
        return row

    def _same_job(self, op: str, row: Row | None, answer: Any) -> Row | None:
        found = None if answer is None else (answer.id, answer.status.value, answer.settled, answer.version)
        wanted = None if row is None else (row.id, row.status, bool(row.settled), row.version)
        self._expect(op, found, wanted)
        return row

    def _rowid(self, job_id: str) -> int:
        found = self._connection.execute("SELECT rowid FROM batch_job WHERE id = ?", (job_id,)).fetchone()
        return -1 if found is None else int(found[0])

    # ---- reads

    def _read_job(self, values: tuple[Any, ...], asked: Facts, answer: Any) -> None:
        self._seen("job", values[0], asked, answer)

    def _read_status(self, values: tuple[Any, ...], asked: Facts, answer: Any) -> None:
        self._seen("status", values[0], asked, None if answer is None else answer.job)

    def _seen(self, op: str, job_id: str, asked: Facts, job: Any) -> None:
        ledger = self._ledger
        row = ledger.jobs.get(job_id)
        if not ledger.visible(row, asked["now"], asked["caller"]):
            row = None
        found = None if job is None else (job.id, job.status.value, job.settled, job.version, job.lease)
        wanted = None if row is None else (row.id, row.status, bool(row.settled), row.version, row.lease)
        self._expect(op, found, wanted)

    def _read_jobs(self, values: tuple[Any, ...], asked: Facts, answer: Any) -> None:
        if asked["before"] is None:
            status = None if asked["status"] is None else asked["status"].value
            wanted = self._ledger.listed(asked["now"], asked["caller"], status, None)
            self._expect("jobs", [job.id for job in answer], wanted[: asked["limit"]])

    def _read_gone(self, values: tuple[Any, ...], asked: Facts, answer: Any) -> None:
        wanted = self._ledger.why_gone(values[0], asked["caller"], asked["now"])
        if answer not in wanted:
            self._expect("gone", answer, wanted)

    def _read_lapsed(self, values: tuple[Any, ...], asked: Facts, answer: Any) -> None:
        self._expect("lapsed", set(answer.job_ids), self._ledger.lapsed(asked["now"]))


def _job_row(row: Row) -> tuple[Any, ...]:
    return (
        row.order, row.caller, row.caller_class, row.status, row.settled, row.error, len(row.pages),
        row.targets_done, row.targets_failed, row.version, row.created_at, row.started_at, row.finished_at,
        row.lease, row.nbytes, row.rerun_of,
    )  # fmt: skip


def _page_row(page: Page) -> tuple[Any, ...]:
    return (
        page.url, page.options, page.status, page.nbytes, page.error, page.hint, page.code, page.http_status,
        page.retryable, page.chars, page.result,
    )  # fmt: skip


def _options(target: Any) -> str:
    mode = target.options.mode
    return f'{{"mode":"{mode}"}}' if mode else "{}"


_NAMES: Final = {JobsBusy: "jobs_busy", UnknownJob: "unknown", UnsettledJob: "unsettled"}


def _outcome(answer: Any) -> tuple[str, str]:
    if isinstance(answer, Created):
        return "created", ""
    if isinstance(answer, Reused):
        return "reused", answer.job_id
    if isinstance(answer, CallerBusy):
        return "caller_busy", answer.job_id
    return _NAMES[type(answer)], ""
