// SPDX-License-Identifier: Apache-2.0

package dist

import "libdist.example/dist/internal/cdist"

// The collectives, on lists of tensors. Every replica of the run makes the same collectives in the same order. `in` and
// `out` may be the same list where collective.h says "in place"; it also says which shapes fit together, and in which
// order contributions are added.

// meet is one collective: pack both lists, call, unpack nothing. The same list twice is packed once.
func (r *Replica) meet(in, out []Array, options []Option,
	call func(replica int64, in, out []int64, n int64, options cdist.Dist_collective_options) error) error {
	var c collective
	defer c.end()
	replica := c.begin(r, options)
	ins := c.tensors(in)
	outs := ins
	if len(in) == 0 || len(in) != len(out) || &in[0] != &out[0] {
		outs = c.tensors(out)
	}
	if c.err != nil {
		return c.err
	}
	// With several contributions `in` is that many lists; the outputs say how long one is. On those who write no output
	// it is the input's.
	n := len(out)
	if out == nil {
		n = len(in)
		if c.choices.contributions > 1 {
			n /= c.choices.contributions
		}
	}
	return c.finish(call(replica, ins, outs, int64(n), c.native))
}

// fits refuses lists of different lengths, of which C would read past one. With several contributions the input is
// that many lists.
func fits(in, out []Array, options []Option) error {
	lists := max(1, chosen(options).contributions)
	if in != nil && out != nil && len(in) != lists*len(out) {
		return newError(ErrInvalidArgument, "%d tensors in and %d out do not fit together", len(in), len(out))
	}
	return nil
}

// AllReduce reduces tensors over all replicas; every replica gets the results.
func (r *Replica) AllReduce(op ReduceOp, in, out []Array, options ...Option) error {
	if err := fits(in, out, options); err != nil {
		return err
	}
	return r.meet(in, out, options, func(replica int64, in, out []int64, n int64, o cdist.Dist_collective_options) error {
		return cdist.Dist_all_reduce(replica, int32Of(int(op)), in, out, n, o)
	})
}

// ReduceToRoot reduces tensors over all replicas; the root gets the results. out may be nil elsewhere.
func (r *Replica) ReduceToRoot(op ReduceOp, root int, in, out []Array, options ...Option) error {
	if err := fits(in, out, options); err != nil {
		return err
	}
	return r.meet(in, out, options, func(replica int64, in, out []int64, n int64, o cdist.Dist_collective_options) error {
		if err := checkInt32("root", root); err != nil {
			return err
		}
		return cdist.Dist_reduce_to_root(replica, int32Of(int(op)), root, in, out, n, o)
	})
}

// ReduceScatter reduces tensors over all replicas; every replica gets a part of each result.
func (r *Replica) ReduceScatter(op ReduceOp, in, out []Array, options ...Option) error {
	if err := fits(in, out, options); err != nil {
		return err
	}
	return r.meet(in, out, options, func(replica int64, in, out []int64, n int64, o cdist.Dist_collective_options) error {
		return cdist.Dist_reduce_scatter(replica, int32Of(int(op)), in, out, n, o)
	})
}

// AllGather joins the tensors of all replicas along Axis; every replica gets the results.
func (r *Replica) AllGather(in, out []Array, options ...Option) error {
	if err := fits(in, out, nil); err != nil {
		return err
	}
	return r.meet(in, out, options, cdist.Dist_all_gather)
}

// GatherToRoot joins the tensors of all replicas along Axis; the root gets the results. out may be nil elsewhere.
func (r *Replica) GatherToRoot(root int, in, out []Array, options ...Option) error {
	if err := fits(in, out, nil); err != nil {
		return err
	}
	return r.meet(in, out, options, func(replica int64, in, out []int64, n int64, o cdist.Dist_collective_options) error {
		if err := checkInt32("root", root); err != nil {
			return err
		}
		return cdist.Dist_gather_to_root(replica, root, in, out, n, o)
	})
}

// Broadcast gives every replica the root's tensors. in may be nil elsewhere.
func (r *Replica) Broadcast(root int, in, out []Array, options ...Option) error {
	if err := fits(in, out, nil); err != nil {
		return err
	}
	return r.meet(in, out, options, func(replica int64, in, out []int64, n int64, o cdist.Dist_collective_options) error {
		if err := checkInt32("root", root); err != nil {
			return err
		}
		return cdist.Dist_broadcast(replica, root, in, out, n, o)
	})
}

// ScatterFromRoot gives every replica a part of each of the root's tensors, along Axis. in may be nil elsewhere.
func (r *Replica) ScatterFromRoot(root int, in, out []Array, options ...Option) error {
	if err := fits(in, out, nil); err != nil {
		return err
	}
	return r.meet(in, out, options, func(replica int64, in, out []int64, n int64, o cdist.Dist_collective_options) error {
		if err := checkInt32("root", root); err != nil {
			return err
		}
		return cdist.Dist_scatter_from_root(replica, root, in, out, n, o)
	})
}

// AllToAll gives every replica a part of every replica's tensors, along Axis, cut by Splits or equally.
func (r *Replica) AllToAll(in, out []Array, options ...Option) error {
	if err := fits(in, out, nil); err != nil {
		return err
	}
	if splits := chosen(options).splits; splits != nil && r != nil {
		if members := r.members(options); len(splits) != members {
			return newError(ErrInvalidArgument, "%d splits for %d replicas: give one for each", len(splits), members)
		}
	}
	return r.meet(in, out, options, cdist.Dist_all_to_all)
}

// members is how many replicas meet.
func (r *Replica) members(options []Option) int {
	if group := chosen(options).group; group != nil {
		return group.Size()
	}
	return r.NumReplicas()
}

// Scan reduces tensors over the replicas up to each one.
func (r *Replica) Scan(op ReduceOp, kind ScanKind, in, out []Array, options ...Option) error {
	if err := fits(in, out, nil); err != nil {
		return err
	}
	return r.meet(in, out, options, func(replica int64, in, out []int64, n int64, o cdist.Dist_collective_options) error {
		return cdist.Dist_scan(replica, int32Of(int(op)), int32Of(int(kind)), in, out, n, o)
	})
}

// Permute gives this replica's tensors to `destination`, and gets those of `source`; -1: nobody.
func (r *Replica) Permute(destination, source int, in, out []Array, options ...Option) error {
	if err := fits(in, out, nil); err != nil {
		return err
	}
	return r.meet(in, out, options, func(replica int64, in, out []int64, n int64, o cdist.Dist_collective_options) error {
		var u uses
		to, from := u.int32("destination", destination), u.int32("source", source)
		if u.err != nil {
			return u.err
		}
		return cdist.Dist_permute(replica, to, from, in, out, n, o)
	})
}

// Barrier returns when every member has come. What each wrote before, all can read after.
func (r *Replica) Barrier(options ...Option) error {
	if tag, timeout, quick := common(options); quick {
		if err := r.check(); err != nil {
			return err
		}
		return r.told(cdist.Quick_barrier(r.handle(), tag, timeout))
	}
	var c collective
	defer c.end()
	replica := c.begin(r, options)
	if c.err != nil {
		return c.err
	}
	return c.finish(cdist.Dist_barrier(replica, c.native))
}

// AllReduceValue is AllReduce on a nest: every leaf is reduced, and the result has the value's structure. Indexed slices
// are joined instead.
func (r *Replica) AllReduceValue(op ReduceOp, v *Value, options ...Option) (*Value, error) {
	var c collective
	defer c.end()
	replica, value := c.begin(r, options), c.value(v)
	if c.err != nil {
		return nil, c.err
	}
	var out int64
	err := c.finish(cdist.Dist_all_reduce_value(replica, int32Of(int(op)), value, c.native, &out))
	return adopt(out, err)
}

// AllGatherValue is AllGather on a nest: every leaf is joined, and the result has the value's structure.
func (r *Replica) AllGatherValue(v *Value, options ...Option) (*Value, error) {
	var c collective
	defer c.end()
	replica, value := c.begin(r, options), c.value(v)
	if c.err != nil {
		return nil, c.err
	}
	var out int64
	err := c.finish(cdist.Dist_all_gather_value(replica, value, c.native, &out))
	return adopt(out, err)
}
