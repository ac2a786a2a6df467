// SPDX-License-Identifier: Apache-2.0

package dist

import "libdist.example/dist/internal/cdist"

// Collectives on lists of tensors. Every replica of the run must make the same collectives in the same order.

// meet makes one collective. It packs both lists; if they are the same list, it packs it once.
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
	// With several contributions, in has that many lists, each as long as out. A member without outputs divides the
	// length of in instead.
	n := len(out)
	if out == nil {
		n = len(in)
		if c.choices.contributions > 1 {
			n /= c.choices.contributions
		}
	}
	return c.finish(call(replica, ins, outs, int64(n), c.native))
}

// fits rejects lists of different lengths, because C would read beyond the shorter one. With several
// contributions, the input consists of that many lists.
func fits(in, out []Array, options []Option) error {
	lists := max(1, chosen(options).contributions)
	if in != nil && out != nil && len(in) != lists*len(out) {
		return newError(ErrInvalidArgument, "there are %d tensors in and %d out, but must be %d in for each one out", len(in), len(out), lists)
	}
	return nil
}

// AllReduce reduces each tensor of in over all replicas. Every replica gets the results in out, which may be
// the same list as in.
//
// Here and in the methods below, all replicas of the run must call the same collectives in the same order. A
// collective blocks until every member has arrived, a member fails, or the timeout expires. If it fails, it
// fails on every member with the same report, and the content of out is unspecified.
func (r *Replica) AllReduce(op ReduceOp, in, out []Array, options ...Option) error {
	if err := fits(in, out, options); err != nil {
		return err
	}
	return r.meet(in, out, options, func(replica int64, in, out []int64, n int64, o cdist.Dist_collective_options) error {
		return cdist.Dist_all_reduce(replica, int32Of(int(op)), in, out, n, o)
	})
}

// ReduceToRoot reduces each tensor of in over all replicas. Only the root gets the results; elsewhere out may
// be nil.
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

// ReduceScatter reduces each tensor of in over all replicas. Every replica gets one part of each result along
// [Axis], in the order of ranks. The sizes of the members' out tensors along the axis must add up to that of
// the in tensor. in and out must not overlap.
func (r *Replica) ReduceScatter(op ReduceOp, in, out []Array, options ...Option) error {
	if err := fits(in, out, options); err != nil {
		return err
	}
	return r.meet(in, out, options, func(replica int64, in, out []int64, n int64, o cdist.Dist_collective_options) error {
		return cdist.Dist_reduce_scatter(replica, int32Of(int(op)), in, out, n, o)
	})
}

// AllGather concatenates the tensors of all replicas along [Axis], in the order of ranks. Every replica gets
// the results. Sizes may differ along the axis; the size of the out tensor is their sum.
func (r *Replica) AllGather(in, out []Array, options ...Option) error {
	if err := fits(in, out, nil); err != nil {
		return err
	}
	return r.meet(in, out, options, cdist.Dist_all_gather)
}

// GatherToRoot concatenates the tensors of all replicas along [Axis], in the order of ranks. Only the root
// gets the results; elsewhere out may be nil.
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

// Broadcast copies the root's tensors to every replica. in is read only on the root and may be nil elsewhere.
// The root may pass the same list as in and out.
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

// ScatterFromRoot splits each of the root's tensors along [Axis] and gives every replica one part, in the
// order of ranks. The size of a part is that of the replica's out tensor. in is read only on the root and may
// be nil elsewhere.
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

// AllToAll sends one part of each tensor to every replica. The in tensors are split along [Axis], into parts
// of the sizes given by [Splits] or into equal parts. Each replica gets the concatenation of the parts that
// were sent to it, in the order of ranks. in and out must not overlap.
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

// members returns the number of participating replicas.
func (r *Replica) members(options []Option) int {
	if group := chosen(options).group; group != nil {
		return group.Size()
	}
	return r.NumReplicas()
}

// Scan reduces each tensor over the replicas with lower ranks, and over this replica too if kind is
// [Inclusive].
func (r *Replica) Scan(op ReduceOp, kind ScanKind, in, out []Array, options ...Option) error {
	if err := fits(in, out, nil); err != nil {
		return err
	}
	return r.meet(in, out, options, func(replica int64, in, out []int64, n int64, o cdist.Dist_collective_options) error {
		return cdist.Dist_scan(replica, int32Of(int(op)), int32Of(int(kind)), in, out, n, o)
	})
}

// Permute sends the in tensors to the replica with rank destination and receives the out tensors from the
// replica with rank source. A rank of -1 means none; without a source, out is set to zeros. in and out must
// not overlap.
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

// Barrier waits until every member has arrived. All writes that a member made before the barrier are visible
// to all members after it.
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

// AllReduceValue reduces every leaf of a nested value, like [Replica.AllReduce]. The result has the structure
// of v. Indexed slices are concatenated instead of added. The caller must close the result.
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

// AllGatherValue concatenates every leaf of a nested value, like [Replica.AllGather]. The result has the
// structure of v. The caller must close the result.
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
