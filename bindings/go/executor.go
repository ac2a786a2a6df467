// SPDX-License-Identifier: Apache-2.0

package dist

import (
	"runtime"
	"sync/atomic"

	"libdist.example/dist/internal/cdist"
)

// Executor has goroutines of the program's share loops, in place of oneTBB's threads: Replica.ParallelFor, and what is
// reduced, gathered, assigned and loaded from outside. Who begins a loop takes part in it and never waits for a task that has
// not begun. The bits of results are the same. The zero Executor makes a goroutine of each task.
type Executor struct {
	// NumThreads is how many help a loop at most, beside the one that begins it; 0: one less than GOMAXPROCS, but at least 1.
	NumThreads int
	// Execute has task called, on any goroutine, now or later, also when the strategy is closed; a second call does nothing.
	// It is called where a loop begins, for each that may help, and must not wait for the task's end. An error, or a panic,
	// says that the task will not be called: the loop does without, and nobody is told. A task that is dropped without a
	// word leaves its memory behind. nil: go task().
	Execute func(task func()) error
}

// loops is what a token of an executor's stands for.
type loops func(task func()) error

// set puts the executor into the options of a strategy.
func (e *Executor) set(s *Strategy, native cdist.Dist_strategy_options, numThreads int) {
	if e == nil {
		return
	}
	execute := loops(e.Execute)
	if execute == nil {
		execute = func(task func()) error {
			go task()
			return nil
		}
	}
	native.Set_executor(s.held.keep(execute), numThreads)
}

// numThreads is how many help a loop; what C refuses, it refuses.
func (u *uses) numThreads(e *Executor) int {
	switch {
	case e == nil:
		return 0
	case e.NumThreads == 0:
		return max(1, runtime.GOMAXPROCS(0)-1)
	}
	return u.int32("Options.Executor.NumThreads", e.NumThreads)
}

// Execute is called by libdist where a loop begins; 0 says that the task has been called, or will be.
func (callbacks) Execute(token, task, data int64) int {
	execute := registered[loops](token)
	if execute == nil { // of a strategy whose Shutdown has left functions behind
		return 1
	}
	taken := new(atomic.Bool) // called, or refused
	err := onNative(-1, func() error {
		return execute(func() {
			if !taken.Swap(true) {
				cdist.Run_task(task, data)
			}
		})
	})
	if err != nil && !taken.Swap(true) {
		return 1
	}
	return 0
}
