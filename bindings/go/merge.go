// SPDX-License-Identifier: Apache-2.0

package dist

import "libdist.example/dist/internal/cdist"

// MergeFunc runs once on behalf of all replicas, in cross-replica context, while they wait. args holds the
// merged arguments of all replicas, and kwargs the named ones or nil; both are valid only during the call.
// libdist takes ownership of the result.
type MergeFunc = func(s *Strategy, args, kwargs *Value) (*Value, error)

type mergeCall struct {
	*failures // of all replicas of the run
	strategy  *Strategy
	fn        MergeFunc
}

// Merge is called by libdist for MergeCall, on replica 0's thread.
func (callbacks) Merge(token, _, args, kwargs int64) int64 {
	c := registered[*mergeCall](token)
	return c.makes(func() (*Value, error) {
		given, named := lend(args), lend(kwargs)
		defer given.Close()
		defer named.Close()
		return c.fn(c.strategy, given, named)
	})
}

// MergeCall waits for all replicas and then runs fn once on behalf of all of them; replica 0's fn is used.
// args is a list, a tuple or nil, and kwargs a dictionary or nil. Every replica gets its component of the result and must close it. If fn
// fails, MergeCall returns its error on every replica.
func (r *Replica) MergeCall(fn MergeFunc, args, kwargs *Value, options ...Option) (*Value, error) {
	var c collective
	defer c.end()
	replica, positional, named := c.begin(r, options), c.value(args), c.value(kwargs)
	if c.err != nil {
		return nil, c.err
	}
	token := registerIf(fn != nil, &mergeCall{r.given(), r.Strategy(), fn})
	defer forget(token)
	var out int64
	err := r.sharedError(cdist.Dist_merge_call(replica, token, positional, named, c.native, &out))
	return adopt(out, err)
}
