"""Background streams: work that goes on while the rank computes, as on a GPU's second stream.

One thread and one first-in-first-out queue per stream. Jobs must be given in the same order on all
ranks. The recorder and the board see the stream as a program of its own, tied to the main one by
events: a job starts after the point of the main program that gave it, and `wait` on its handle
waits for the job's end. """

from __future__ import annotations

import queue
import threading

from .board import ON_JOB
from .group import Group
from .recorder import learner_site, library_line
from .trace import MAIN


class Job:
    """A piece of background work. `wait()` returns what the function returned, or raises what it
    raised.
    """

    def __init__(self, stream: Stream, number: int, function, args, kwargs):
        self.stream, self.number = stream, number
        self.work = (function, args, kwargs)
        self.done = threading.Event()
        self.result = self.error = None

    def wait(self):
        stream, context = self.stream, self.stream.group._context
        recorder, start = context.recorder, context.recorder.now() if context.recorder else 0.0
        if context.writer and not self.done.is_set():
            site = learner_site()
            context.writer.block(0, ON_JOB, 0, False, 0, stream.number, self.number, site)
            self.done.wait()
            context.writer.unblock(0)
        self.done.wait()
        if recorder:
            recorder.add("await", start, recorder.now(), MAIN,
                         event=f"{stream.name}:done{self.number}",
                         site=learner_site(), source=library_line())
        if self.error is not None:
            raise self.error
        return self.result


class Stream:
    """A named queue of jobs; `stream.group` is the communicator that its jobs use.

    In a dry run there is no thread: a job is recorded on the stream's own program when it is given.
    """

    def __init__(self, group: Group, name: str):
        if name == MAIN:
            raise ValueError(f"name={name!r}: the main stream exists already; choose another name")
        context = group._context
        # Two groups may each have a stream "comm": in the trace and on the board they are two.
        name = name if group.name == "world" else f"{name} of {group.name}"
        self.name, self.dry = name, context.transport.__class__.__name__ == "DryTransport"
        self.group = Group(context, f"{group.name}@{name}", group.ranks, name,
                           group._transport.background(group.ranks))
        self.number, self.given = self.group._stream_number, 0
        self.jobs: queue.SimpleQueue = queue.SimpleQueue()
        if not self.dry:
            threading.Thread(target=self._serve, name=f"stream {name}", daemon=True).start()

    def submit(self, function, *args, **kwargs) -> Job:
        """Give a job: `function(*args, **kwargs)` runs on the stream after all jobs given
        before.
        """
        self.given += 1
        job = Job(self, self.given, function, args, kwargs)
        context = self.group._context
        if context.recorder:
            now = context.recorder.now()
            context.recorder.add("record", now, now, MAIN, event=f"{self.name}:given{job.number}",
                                 site=learner_site(), source=library_line())
        if context.writer:
            context.writer.jobs(self.number, given=self.given)
        if self.dry:
            self._run(job)
            job.done.set()
        else:
            self.jobs.put(job)
        return job

    def _serve(self) -> None:
        if self.group._context.recorder:
            self.group._context.recorder.thread.stream = self.name
        while True:
            job = self.jobs.get()
            self._run(job)
            # From here on only the owner holds the job: what dies with it dies in the owner's
            # program, and not whenever this thread gets on.
            done, job = job.done, None
            done.set()

    def _run(self, job: Job) -> None:
        context, recorder = self.group._context, self.group._context.recorder
        function, args, kwargs = job.work
        if recorder:
            before = getattr(recorder.thread, "stream", MAIN)
            recorder.thread.stream = self.name
            now = recorder.now()
            recorder.add("await", now, now, self.name, event=f"{self.name}:given{job.number}")
        try:
            job.result = function(*args, **kwargs)
        except BaseException as error:  # travels to whoever waits for the job
            job.error = error
        # The thread keeps nothing: what a job held must be free when its owner lets go of it.
        job.work = function = args = kwargs = None
        if recorder:
            now = recorder.now()
            recorder.add("record", now, now, self.name, event=f"{self.name}:done{job.number}")
            recorder.thread.stream = before
        if context.writer:
            context.writer.jobs(self.number, done=job.number)
