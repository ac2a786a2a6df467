// SPDX-License-Identifier: Apache-2.0

package dist

import "libdist.example/dist/internal/cdist"

// A Budget limits how many threads several strategies use at the same time. Set it in Options.Budget of each
// of them.
//
// A run acquires as many threads as it has replicas that can run in parallel, or all threads of the budget if
// that is more than the budget has. A request acquires one. If too few threads are free, the run or request
// waits until its context ends. All strategies share one queue in order of arrival. Calls from inside a
// callback of libdist acquire no threads. A callback must not wait, through a channel or a lock of the
// program, for a run or a request that another goroutine has started.
type Budget struct{ object }

// NewBudget returns a new budget of the given number of threads. The caller must close it.
func NewBudget(threads int) (*Budget, error) {
	if err := checkInt32("threads", threads); err != nil {
		return nil, err
	}
	var out int64
	if err := cdist.Dist_budget_create(nil, threads, &out); err != nil {
		return nil, fromNative(err)
	}
	b := &Budget{}
	b.open(out, cdist.Dist_budget_destroy, nil)
	return b, nil
}

// Close releases the budget. Strategies that use it keep it. Closing a nil or closed budget does nothing.
func (b *Budget) Close() error {
	if b != nil {
		b.close()
	}
	return nil
}

func (u *uses) budget(b *Budget) int64 {
	if b == nil {
		return 0
	}
	return u.takeMade(&b.object, "budget")
}
