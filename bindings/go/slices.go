// SPDX-License-Identifier: Apache-2.0

package dist

import "libdist.example/dist/internal/cdist"

// The collectives on one slice, which counts as a tensor of one dimension.

// AllReduce reduces data over all replicas, in place: afterwards every replica holds op over all of them.
// Results fold from left to right by replica id: the same bits on every replica and in every run. Mean needs
// a floating-point or complex type.
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

// Broadcast gives every replica the root's data, in place.
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

// one is the list of one slice; nil is no list.
func one[T Element](data []T) []Array {
	if data == nil {
		return nil
	}
	return []Array{Of(data)}
}

// ReduceToRoot reduces in over all replicas; the root gets the result in out, which may be nil elsewhere.
func ReduceToRoot[T Element](r *Replica, op ReduceOp, root int, in, out []T, options ...Option) error {
	return r.ReduceToRoot(op, root, []Array{Of(in)}, one(out), options...)
}

// ReduceScatter reduces in over all replicas; every replica gets as much of the result as out has room for, in the
// order of ids.
func ReduceScatter[T Element](r *Replica, op ReduceOp, in, out []T, options ...Option) error {
	return r.ReduceScatter(op, []Array{Of(in)}, []Array{Of(out)}, options...)
}

// AllGather joins in of all replicas to out, in the order of ids.
func AllGather[T Element](r *Replica, in, out []T, options ...Option) error {
	return r.AllGather([]Array{Of(in)}, []Array{Of(out)}, options...)
}

// GatherToRoot joins in of all replicas; the root gets the result in out, which may be nil elsewhere.
func GatherToRoot[T Element](r *Replica, root int, in, out []T, options ...Option) error {
	return r.GatherToRoot(root, []Array{Of(in)}, one(out), options...)
}

// ScatterFromRoot gives every replica as much of the root's in as its out has room for; in may be nil elsewhere.
func ScatterFromRoot[T Element](r *Replica, root int, in, out []T, options ...Option) error {
	return r.ScatterFromRoot(root, one(in), []Array{Of(out)}, options...)
}

// AllToAll gives every replica a part of in, cut by Splits or equally; out is what this one gets, in the order of ids.
func AllToAll[T Element](r *Replica, in, out []T, options ...Option) error {
	return r.AllToAll([]Array{Of(in)}, []Array{Of(out)}, options...)
}

// Scan reduces in over the replicas up to each one.
func Scan[T Element](r *Replica, op ReduceOp, kind ScanKind, in, out []T, options ...Option) error {
	return r.Scan(op, kind, []Array{Of(in)}, []Array{Of(out)}, options...)
}

// Permute gives in to the replica `destination`, and puts that of `source` into out; -1: nobody.
func Permute[T Element](r *Replica, destination, source int, in, out []T, options ...Option) error {
	return r.Permute(destination, source, []Array{Of(in)}, []Array{Of(out)}, options...)
}
