// SPDX-License-Identifier: Apache-2.0

package dist

import (
	"runtime"
	"sync/atomic"

	"libdist.example/dist/internal/cdist"
)

// An Executor runs parts of loops on goroutines of the program instead of oneTBB threads. libdist uses it for
// [Replica.ParallelFor], and for reducing, gathering, assigning and loading values outside runs. The
// goroutine that starts a loop takes part in it and never waits for a task that has not started. Results have
// the same bits. The zero Executor starts a goroutine for each task.
type Executor struct {
	// NumThreads is the maximum number of tasks that help with a loop, not counting the goroutine that starts
	// it. 0 selects GOMAXPROCS-1, but at least 1.
	NumThreads int
	// Execute schedules a call of task on any goroutine, now or later, possibly after the strategy was closed.
	// Further calls of the same task do nothing. libdist calls Execute when a loop starts, once for each helper;
	// it must not wait for the task. If it returns an error or panics, the loop runs without that helper, and
	// the error is not reported. If Execute succeeds but never calls the task, the task's memory leaks. If
	// Execute is nil, each task is started with a go statement.
	Execute func(task func()) error
}

// loops is the object behind the token of an executor.
type loops func(task func()) error

// executor sets the goroutines for loops.
func (u *uses) executor(native cdist.Dist_strategy_options, e *Executor) {
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
	native.Set_executor(u.token(execute), u.numThreads(e))
}

// numThreads returns the maximum number of helpers. It passes invalid numbers on, and libdist rejects them.
func (u *uses) numThreads(e *Executor) int {
	if e.NumThreads == 0 {
		return max(1, runtime.GOMAXPROCS(0)-1)
	}
	return u.int32("Options.Executor.NumThreads", e.NumThreads)
}

// Execute is called by libdist when a loop starts. 0 means that the task has been called or will be.
func (callbacks) Execute(token, task, data int64) int {
	execute := registered[loops](token)
	if execute == nil { // the strategy was shut down while functions were running
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
