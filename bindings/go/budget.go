// SPDX-License-Identifier: Apache-2.0

package dist

import "libdist.example/dist/internal/cdist"

// Budget is how many threads of several strategies work at the same time: Options.Budget of each of them.
//
// A run takes as many as it has replicas that work side by side, or all where that is more; a request takes one. Where too
// few are free they wait, first come, first served, whatever their strategy, until their context ends. What begins inside a
// function that libdist has called takes nothing. A function must not wait, by a channel or a lock of the program's, for a
// run or a request that somebody else has begun.
type Budget struct{ object }

// NewBudget makes a budget of that many threads. Close it.
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

// Close gives the budget up; strategies that have it keep it. Closing twice, and nil, are fine.
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
	return u.take(&b.object, "budget")
}
