// SPDX-License-Identifier: Apache-2.0

package dist

import "libdist.example/dist/internal/cdist"

// Methods of a Replica that is a logical device, inside RunOnDevices.

// DeviceReplica returns the replica to which a logical device belongs. It returns -1 for a replica itself and
// for nil.
func (r *Replica) DeviceReplica() int {
	if r == nil || r.ended.Load() {
		return -1
	}
	return cdist.Dist_device_replica(r.native)
}

// DeviceCoordinates returns the position of a logical device in the mesh of the topology.
func (r *Replica) DeviceCoordinates() ([]int, error) {
	if err := r.check(); err != nil {
		return nil, err
	}
	return numbersOf(func(n cdist.Numbers) error { return n.Device_coordinates(r.handle()) })
}

// DeviceAxis returns the position of a logical device along a named axis of its replica's devices, and the
// size of the axis. The axes are those of Options.Axes. Without that option they are "x", "y", "z" and "core"
// if replicas are blocks of the mesh in which the core varies fastest, and otherwise one axis, "device".
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

// DeviceAxisGroup returns the group of the logical devices that differ from this one only in their position
// along an axis, for [InGroup]. The position along the axis is the rank in the group. The strategy owns the
// group; it must not be closed.
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

// Halo specifies the width of the halo around each member's tile of a tensor, in each dimension. A nil Low,
// High or Edges counts as all zeros.
type Halo struct {
	Parts []int  // number of tiles in each dimension; the product is the number of members
	Low   []int  // number of elements before the tile
	High  []int  // number of elements after the tile
	Edges []Edge // content beyond the edges of the whole tensor; nil = zeros
}

// native returns the halo for C, which the caller must delete.
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

// HaloExchange builds this member's tile of a tensor together with its surroundings, from the tiles of all
// members. The tile of rank r is the one at position r in a box of shape halo.Parts, the last index varying
// fastest. Along each dimension, out has room for the Low elements, the tile and the High elements, in this
// order; with [EdgeNone] it ends where the whole tensor ends.
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

// Reshard redistributes a tensor among the members from one partition to another. in and out are nil on
// members that have no part of the tensor.
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

// move makes a collective of one tensor.
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
