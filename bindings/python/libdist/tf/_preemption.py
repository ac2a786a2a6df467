# SPDX-License-Identifier: Apache-2.0
"""tf.distribute.experimental.PreemptionCheckpointHandler, with libdist.PreemptionHandler.

The native handler carries the notice and determines between which two runs all workers save. tf.train determines what
is saved, and how. The number of calls of run() is a variable of the checkpoint, as in TensorFlow, and also the metadata
text of native handlers, so that each can read the other's files.
"""

from __future__ import annotations

import logging
import os
import weakref
import zlib
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING, Any, Callable, Iterator, Optional, Union

import numpy as np

import libdist
from libdist._arguments import checked
from libdist._runs import current

from ._checkpoint import RUNS, RUNS_TEXT, held_by, owner_of
from ._cluster import ClusterResolver, ClusterSpec
from ._context import face_of, faces
from ._missing import Refusing
from ._options import VariableAggregation
from ._termination import Notice, TerminationConfig, begin, check_thread, ignore
from ._variable import Variable
from .train import Checkpoint, CheckpointManager

if TYPE_CHECKING:
    from ._strategy import Strategy

_log = logging.getLogger("libdist.tf")


@checked
class PreemptionCheckpointHandler(Refusing):
    """Saves a checkpoint before a machine is taken away, on all workers between the same two runs, and ends the job.

        handler = tf.distribute.experimental.PreemptionCheckpointHandler(strategy.cluster_resolver, checkpoint, folder)
        while handler.total_run_calls < STEPS:
            handler.run(train_step, next(iterator))  # which contains a strategy.run()
    """

    _tf_name = "tf.distribute.experimental.PreemptionCheckpointHandler"

    def __init__(
        self,
        cluster_resolver: Optional[ClusterResolver],
        checkpoint_or_checkpoint_manager: Union[Checkpoint, CheckpointManager],
        checkpoint_dir: Union[None, str, os.PathLike[str]] = None,
        termination_config: Optional[TerminationConfig] = None,
    ) -> None:
        """Restores the latest checkpoint, if there is one.

        All workers must create the handler; they wait for each other.

        cluster_resolver: the resolver of the strategy; None = the strategy of the scope, or of the variables.

        checkpoint_dir: for a Checkpoint, the folder in which a manager keeps the latest file. A manager has its own
        folder.
        """
        _outside("PreemptionCheckpointHandler")
        config = TerminationConfig() if termination_config is None else termination_config
        self._manager = _manager(checkpoint_or_checkpoint_manager, checkpoint_dir)
        self._checkpoint = self._manager.checkpoint
        self._strategy = _strategy(cluster_resolver, self._checkpoint)
        _check_counter(self._checkpoint)
        check_thread(config)
        self._exit_fn, self._save_fn = config.exit_fn, config.save_fn
        self._saved = libdist.PreemptionState.NONE  # the state for which a checkpoint has been saved
        self._left = False  # exit_fn has returned
        self._looks = False
        self._runs = 0
        self._notice = Notice()
        self._native = self._strategy._native.preemption_handler(grace=config.grace_period)
        try:
            self._restore()
            self._watcher = begin(config, self._notice)
        except BaseException:
            self._native.close()
            raise
        self._strategy._native._children.add(self)  # closing the strategy closes the handler

    @property
    def total_run_calls(self) -> int:
        """The number of calls of run(), including those of earlier program starts that the checkpoint recorded."""
        return self._runs

    def run(self, distributed_train_function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Calls distributed_train_function(*args, **kwargs), which contains a Strategy.run().

        Before that, if the job is preempted, it saves the checkpoint. If the job should end, it calls exit_fn, or
        raises libdist.Cancelled.
        """
        self._look("run", (), {})
        result = distributed_train_function(*args, **kwargs)
        self._runs += 1
        return result

    def save_checkpoint_if_preempted(self, *args: Any, **kwargs: Any) -> None:
        """Saves the checkpoint if the job is preempted, for a loop without run().

        Call it once per step; it counts the steps. It ends the job like run(). Its arguments are those of
        CheckpointManager.save() or of save_fn.
        """
        self._look("save_checkpoint_if_preempted", args, kwargs)
        self._runs += 1

    @contextmanager
    def watch_preemption_scope(self) -> Iterator[None]:
        """Returns a context manager that saves and ends like run() at its end, unless an exception leaves it."""
        yield
        self._look("watch_preemption_scope", (), {})

    def close(self) -> None:
        """Closes the handler and restores the previous handler of SIGTERM. Closing the strategy does this too.

        Not in TensorFlow.
        """
        ignore(self._notice)
        if self._watcher is not None:
            self._watcher.stop()
        self._native.close()

    # ---- saving -----------------------------------------------------------------------------------------------------

    def _look(self, call: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Saves, and ends the job, if it is time; the decision is the same on all workers."""
        _outside(f"PreemptionCheckpointHandler.{call}")
        if self._looks:  # called by save_fn or exit_fn
            return
        self._looks = True
        try:
            self._save_and_end(call, args, kwargs)
        finally:
            self._looks = False

    def _save_and_end(self, call: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        if self._notice.given:
            self._native.notify()
        state = self._native.save_if_preempted()
        if state != self._saved:
            self._save(args, kwargs)
            self._saved = state  # after saving, so that a failed save is tried again
            _log.info("the job is preempted: a checkpoint is saved after %d runs", self._runs)
        if state != libdist.PreemptionState.OVER or self._left:
            return
        if self._exit_fn is None:
            raise libdist.Cancelled(
                f"PreemptionCheckpointHandler.{call}(): the job is preempted, and its checkpoint is saved after "
                f"{self._runs} runs: end the program, and start it again to go on; TerminationConfig(exit_fn=...) says "
                "how else it is to end"
            )
        self._exit_fn()
        self._left = True

    def _save(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self._checkpoint.__dict__["_handler"] = weakref.ref(self)  # if there are several, the handler that saves
        self._counter.assign(self._runs)
        if self._save_fn is not None:
            self._save_fn(*args, **kwargs)
            return
        if len(args) < 2:  # check_interval, the second argument, must be False: it cannot be saved later
            kwargs = {"check_interval": False, **kwargs}
        with self._scope():
            self._manager.save(*args, **kwargs)

    # ---- restoring --------------------------------------------------------------------------------------------------

    def _restore(self) -> None:
        with self._scope():
            self._counter = self._made_counter()
            int(self._checkpoint.save_counter)  # creates the counter, on all workers
            if self._strategy._native.query().worker != 0:
                # It may have looked at the folder before worker 0, which saves there, had written the file.
                self._manager._look_again()
            latest = self._manager.latest_checkpoint
            name = "" if latest is None else os.path.basename(latest)
            self._agree(zlib.crc32(name.encode()), f"the latest checkpoint is {name!r}")
            failure = None
            try:
                self._manager.restore_or_initialize()
                self._runs = 0 if latest is None else self._restored(latest)
            except Exception as error:  # raised after the other workers have been notified
                failure = error
            try:
                self._agree(-1 if failure else self._runs, f"{name!r} says {self._runs} runs, or cannot be restored,")
            except libdist.FailedPrecondition:
                if failure is None:
                    raise
            if failure is not None:
                raise failure
        self._checkpoint.__dict__["_handler"] = weakref.ref(self)

    def _made_counter(self) -> Variable:
        """Returns the checkpoint's variable: that of an earlier handler, or a new one."""
        counter: Optional[Variable] = self._checkpoint.__dict__.get(RUNS)
        if counter is None:
            first, only = np.zeros((), np.int64), VariableAggregation.ONLY_FIRST_REPLICA
            counter = Variable(first, trainable=False, name=RUNS, aggregation=only)
            setattr(self._checkpoint, RUNS, counter)
        return counter

    def _restored(self, path: str) -> int:
        """Returns the number of runs in a file. A native handler stores it only as a text."""
        with self._strategy._native.open_checkpoint(path) as file:
            text = file.metadata.get(RUNS_TEXT)
        if text is None:
            return int(self._counter)
        if not text.isdecimal():
            raise libdist.DataLoss(f"{path!r}: {RUNS_TEXT} is {text!r}, which is no number of runs")
        return int(text)

    def _agree(self, mine: int, words: str) -> None:
        """Raises FailedPrecondition on all workers unless all have the same: they would save at different runs."""
        native = self._strategy._native
        if native.query().num_workers == 1:
            return
        if any(theirs != mine for theirs in np.asarray(native.gather(np.array([mine], np.int64))).tolist()):
            raise libdist.FailedPrecondition(
                f"PreemptionCheckpointHandler(): {words} on this worker, and not on all: give all workers one folder"
            )

    def _scope(self) -> AbstractContextManager[Any]:
        """Returns a context manager in which variables belong to the strategy, which writes the file."""
        if self._strategy._native.kind == libdist.StrategyKind.DEFAULT:
            return nullcontext()
        return self._strategy.scope()


def _outside(call: str) -> None:
    if current.replicas:
        raise libdist.FailedPrecondition(
            f"{call}() is for the program outside of replica functions: call it around strategy.run(), not inside"
        )


def _manager(given: Any, directory: Any) -> CheckpointManager:
    if isinstance(given, CheckpointManager):
        return given
    if not isinstance(given, Checkpoint):
        raise TypeError(
            "checkpoint_or_checkpoint_manager is a tf.train.Checkpoint or a tf.train.CheckpointManager, "
            f"not {given!r}"
        )
    if not directory:
        raise libdist.InvalidArgument("When a checkpoint is passed, a checkpoint_dir must be passed as well.")
    return CheckpointManager(given, os.fsdecode(directory), max_to_keep=1)


def _check_counter(checkpoint: Checkpoint) -> None:
    counter = checkpoint.__dict__.get(RUNS)
    if counter is None or (isinstance(counter, Variable) and not counter.shape and counter.dtype == np.int64):
        return
    raise libdist.InvalidArgument(
        f"the checkpoint's {RUNS!r} is the name of the handler's number of runs, a scalar of int64, and is {counter!r}"
    )


def _strategy(resolver: Optional[ClusterResolver], checkpoint: Checkpoint) -> Strategy:
    """Returns the strategy of a resolver; without a resolver, that of the scope, or of the variables."""
    if resolver is None:
        return face_of(owner_of(held_by(checkpoint)))
    spec = resolver.cluster_spec()
    if not isinstance(spec, ClusterSpec):
        raise TypeError(f"cluster_spec() gave {spec!r}, which is no tf.train.ClusterSpec")
    if "ps" in spec.jobs:
        raise libdist.Unimplemented(
            "PreemptionCheckpointHandler(): the cluster has parameter servers, and it is for workers that make the same "
            "calls alone"
        )
    known = [face_of(owner_of(held_by(checkpoint))), *(face() for face in faces.valuerefs())]
    living = [face for face in known if face is not None and face._native._handle]
    ours = [face for face in living if face._extended._cluster_resolver is resolver]
    found = (ours or living)[0]
    several = bool(spec) and resolver.task_type and spec._native.worker_count(resolver.task_type) > 1
    if several and not found._native.query().in_multi_worker_mode:
        raise libdist.FailedPrecondition(
            f"PreemptionCheckpointHandler(): the cluster has several workers, and {found!r} is alone: make the handler in "
            "the scope of the MultiWorkerMirroredStrategy, or give it that one's cluster_resolver"
        )
    return found
