// SPDX-License-Identifier: Apache-2.0

package dist

import "libdist.example/dist/internal/cdist"

// A Group is a subset of a strategy's replicas, or of a replica's logical devices, that runs collectives
// without the others; see [InGroup]. Groups may overlap.
type Group struct {
	object
	strategy *Strategy
}

// NewGroup returns a group of replicas with the given ids, which must be in ascending order. The rank of a
// replica in the group is its position in this list. Do not call NewGroup during a run. The caller must close
// the group before the strategy.
func (s *Strategy) NewGroup(replicaIDs ...int) (*Group, error) {
	var u uses
	defer u.end()
	native, ids := u.strategy(s), u.int32s("replicaIDs", replicaIDs)
	if u.err != nil {
		return nil, u.err
	}
	var out int64
	if err := cdist.Dist_group_create(native, ids, int64(len(ids)), &out); err != nil {
		return nil, fromNative(err)
	}
	group := &Group{strategy: s}
	group.open(out, func(native int64) {
		if s.groups.Load() { // a Shutdown ends them
			_ = cdist.Dist_group_destroy(native)
		}
	}, s)
	return group, nil
}

func (u *uses) group(g *Group) int64 {
	if g == nil {
		return 0
	}
	if g.destroy == nil && g.strategy != nil && u.strategy(g.strategy) == 0 {
		return 0
	}
	if g.destroy != nil && !g.strategy.groups.Load() {
		u.fail(newError(ErrFailedPrecondition, "the group's strategy is closed: make a new one"))
		return 0
	}
	return u.takeMade(&g.object, "group")
}

// Close closes the group. It fails with [ErrFailedPrecondition] during a run and if the group has unfinished
// work. Closing a nil or closed group does nothing.
func (g *Group) Close() error {
	if g == nil {
		return nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return nil
	}
	if g.users > 0 {
		return newError(ErrFailedPrecondition, "the group is in use: close it after the run")
	}
	if g.destroy == nil {
		return newError(ErrFailedPrecondition, "the group of an axis is its strategy's and ends with it")
	}
	if g.strategy.groups.Load() { // a Shutdown ends them
		if err := cdist.Dist_group_destroy(g.native); err != nil {
			return fromNative(err)
		}
	}
	g.closed = true
	g.cleanup.Stop()
	return nil
}

// Size returns the number of members; 0 for a nil or closed group.
func (g *Group) Size() int {
	var u uses
	defer u.end()
	return cdist.Dist_group_size(u.group(g))
}

// Rank returns the rank of a replica in the group, or -1 if it is not a member.
func (g *Group) Rank(replicaID int) int {
	var u uses
	defer u.end()
	return cdist.Dist_group_rank(u.group(g), int32Of(replicaID))
}
