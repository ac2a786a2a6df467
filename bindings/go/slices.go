// SPDX-License-Identifier: Apache-2.0

package dist

import "libdist.example/dist/internal/cdist"

// Collectives on one slice, which counts as a tensor of one dimension.

// AllReduce reduces data over all replicas, in place: afterwards every replica holds the result of op over
// all of them. By default, elements are folded from left to right by replica id, so the bits are the same on
// every replica and in every run. [Mean] requires a floating-point or complex type.
//
// AllReduce and the functions below treat a slice as a tensor of one dimension. They behave like the methods
// of [Replica] with the same names.
func AllReduce[T Element](r *Replica, op ReduceOp, data []T, options ...Option) error {
	tag, timeout, quick := common(options)
	if !quick {
		list := []Array{Of(data)}
		return r.AllReduce(op, list, list, options...)
	}
	if err := r.check(); err != nil {
		return err
	}
	return r.told(cdist.Quick_all_reduce(r.handle(), int32Of(int(op)), int(DTypeOf[T]()), bytesOf(data),
		int64(len(data)), tag, timeout))
}

// Broadcast copies the root's data to every replica, in place.
func Broadcast[T Element](r *Replica, root int, data []T, options ...Option) error {
	tag, timeout, quick := common(options)
	if !quick {
		list := []Array{Of(data)}
		return r.Broadcast(root, list, list, options...)
	}
	if err := r.check(); err != nil {
		return err
	}
	if err := checkInt32("root", root); err != nil {
		return err
	}
	return r.told(cdist.Quick_broadcast(r.handle(), root, int(DTypeOf[T]()), bytesOf(data),
		int64(len(data)), tag, timeout))
}

// one returns a list of one slice; no list for nil.
func one[T Element](data []T) []Array {
	if data == nil {
		return nil
	}
	return []Array{Of(data)}
}

// ReduceToRoot reduces in over all replicas. Only the root gets the result, in out, which may be nil
// elsewhere.
func ReduceToRoot[T Element](r *Replica, op ReduceOp, root int, in, out []T, options ...Option) error {
	return r.ReduceToRoot(op, root, []Array{Of(in)}, one(out), options...)
}

// ReduceScatter reduces in over all replicas. Every replica gets the next len(out) elements of the result, in
// the order of ranks.
func ReduceScatter[T Element](r *Replica, op ReduceOp, in, out []T, options ...Option) error {
	return r.ReduceScatter(op, []Array{Of(in)}, []Array{Of(out)}, options...)
}

// AllGather concatenates the in slices of all replicas to out, in the order of ranks.
func AllGather[T Element](r *Replica, in, out []T, options ...Option) error {
	return r.AllGather([]Array{Of(in)}, []Array{Of(out)}, options...)
}

// GatherToRoot concatenates the in slices of all replicas, in the order of ranks. Only the root gets the
// result, in out, which may be nil elsewhere.
func GatherToRoot[T Element](r *Replica, root int, in, out []T, options ...Option) error {
	return r.GatherToRoot(root, []Array{Of(in)}, one(out), options...)
}

// ScatterFromRoot splits the root's in slice: every replica gets the next len(out) elements, in the order of
// ranks. in may be nil elsewhere.
func ScatterFromRoot[T Element](r *Replica, root int, in, out []T, options ...Option) error {
	return r.ScatterFromRoot(root, one(in), []Array{Of(out)}, options...)
}

// AllToAll splits in into one part for each replica, as given by [Splits] or into equal parts, and sends the
// parts. out receives the parts for this replica, in the order of ranks.
func AllToAll[T Element](r *Replica, in, out []T, options ...Option) error {
	return r.AllToAll([]Array{Of(in)}, []Array{Of(out)}, options...)
}

// Scan reduces in over the replicas with lower ranks, and over this replica too if kind is [Inclusive].
func Scan[T Element](r *Replica, op ReduceOp, kind ScanKind, in, out []T, options ...Option) error {
	return r.Scan(op, kind, []Array{Of(in)}, []Array{Of(out)}, options...)
}

// Permute sends in to the replica with rank destination, and stores the slice of the replica with rank source
// in out. A rank of -1 means none.
func Permute[T Element](r *Replica, destination, source int, in, out []T, options ...Option) error {
	return r.Permute(destination, source, []Array{Of(in)}, []Array{Of(out)}, options...)
}
