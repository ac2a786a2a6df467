// SPDX-License-Identifier: Apache-2.0

package dist

import "libdist.example/dist/internal/cdist"

// What a Replica has that is a logical device: inside RunOnDevices.

// DeviceReplica is the replica that a logical device is part of; -1 for a replica itself, and for nil.
func (r *Replica) DeviceReplica() int {
	if r == nil || r.ended.Load() {
		return -1
	}
	return cdist.Dist_device_replica(r.native)
}

// DeviceCoordinates are where in the topology's mesh a logical device is.
func (r *Replica) DeviceCoordinates() ([]int, error) {
	if err := r.check(); err != nil {
		return nil, err
	}
	return numbersOf(func(n cdist.Numbers) error { return n.Device_coordinates(r.handle()) })
}

// DeviceAxis is where along a named axis of its replica's devices a logical device is, and how many are along it. The axes
// are Options.Axes; without them "x", "y", "z" and "core" where replicas are blocks of the mesh in which the core runs
// fastest, else one axis, "device".
func (r *Replica) DeviceAxis(name string) (index, size int, err error) {
	if err := r.check(); err != nil {
		return 0, 0, err
	}
	if err := checkText(name); err != nil {
		return 0, 0, err
	}
	var at, n int32
	err = cdist.Dist_device_axis(r.handle(), name, &at, &n)
	return int(at), int(n), fromNative(err)
}

// DeviceAxisGroup is the group of the logical devices that differ from this one in their place along an axis alone, for
// InGroup. The place along the axis is the rank in it. It is the strategy's.
func (r *Replica) DeviceAxisGroup(name string) (*Group, error) {
	if err := r.check(); err != nil {
		return nil, err
	}
	if err := checkText(name); err != nil {
		return nil, err
	}
	var out int64
	if err := cdist.Dist_device_axis_group(r.handle(), name, &out); err != nil {
		return nil, fromNative(err)
	}
	group := &Group{strategy: r.strategy}
	group.open(out, nil, nil)
	return group, nil
}

// Halo says how far around its tile of a tensor a member sees, in each dimension; nil: not at all.
type Halo struct {
	Parts []int  // into how many tiles each dimension is cut; their product is the number of members
	Low   []int  // how many elements before the tile
	High  []int  // how many elements behind it
	Edges []Edge // what is beyond the edges of the whole; nil: zeros
}

// native is the halo on C's side, to be deleted.
func (h Halo) native() (cdist.Dist_halo, error) {
	for _, each := range []struct {
		name string
		n    int
		none bool
	}{{"Low", len(h.Low), h.Low == nil}, {"High", len(h.High), h.High == nil}, {"Edges", len(h.Edges), h.Edges == nil}} {
		if !each.none && each.n != len(h.Parts) {
			return nil, newError(ErrInvalidArgument, "the halo's %s has %d dimensions, its Parts %d", each.name, each.n,
				len(h.Parts))
		}
	}
	native := cdist.NewDist_halo()
	native.Set_parts(int64sOf(h.Parts), int64(len(h.Parts)))
	native.Set_low(int64sOf(h.Low), int64(len(h.Low)))
	native.Set_high(int64sOf(h.High), int64(len(h.High)))
	if len(h.Edges) > 0 {
		edges := make([]int32, len(h.Edges))
		for i, edge := range h.Edges {
			edges[i] = int32(int32Of(int(edge)))
		}
		native.Set_edges(edges, int64(len(edges)))
	}
	return native, nil
}

// HaloExchange gives every member its tile of a tensor with what surrounds it, out of the tiles of all: the member of
// rank r has the tile whose index is r's place in a box of the shape halo.Parts, the last one running fastest. Along a
// dimension out has Low, the tile and High, in this order; with EdgeNone it ends where the whole does.
func (r *Replica) HaloExchange(in Array, halo Halo, out Array, options ...Option) error {
	native, err := halo.native()
	if err != nil {
		return err
	}
	defer cdist.DeleteDist_halo(native)
	return r.move(in, out, options, func(device int64, in, out []int64, options cdist.Dist_collective_options) error {
		return cdist.Dist_halo_exchange(device, in, native, out, options)
	})
}

// Reshard gives every member what it has of a tensor under one partition, out of what all have of it under another. in
// and out are nil where a member has nothing.
func (r *Replica) Reshard(from, to *Partition, in, out Array, options ...Option) error {
	var u uses
	before, after := from.native(&u), to.native(&u)
	defer deletePartition(before)
	defer deletePartition(after)
	if u.err != nil {
		return u.err
	}
	return r.move(in, out, options, func(device int64, in, out []int64, options cdist.Dist_collective_options) error {
		return cdist.Dist_reshard(device, before, after, in, out, options)
	})
}

// move is a collective of one tensor each.
func (r *Replica) move(in, out Array, options []Option,
	call func(device int64, in, out []int64, options cdist.Dist_collective_options) error) error {
	var c collective
	defer c.end()
	device := c.begin(r, options)
	ins, outs := c.tensor(in), c.tensor(out)
	if c.err != nil {
		return c.err
	}
	return c.finish(call(device, ins, outs, c.native))
}
