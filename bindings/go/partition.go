// SPDX-License-Identifier: Apache-2.0

package dist

import "libdist.example/dist/internal/cdist"

// A Partition specifies which part of a tensor each logical device of a replica has.
type Partition struct {
	Kind              PartitionKind
	Shape             []int // shape of the tensor; -1 = size not known
	Dimensions        []int // PartitionSplit: number of parts of each dimension
	NumLogicalDevices int   // number of logical devices of a replica
	LogicalDevice     int   // PartitionAssign: the device that has the tensor
	Uneven            bool  // PartitionSplit: split sizes that are not divisible as evenly as possible
	SPMD              bool  // one program runs on all logical devices; PartitionAssign is then rejected
}

// A Shard is the part of a tensor that a logical device has: Size[i] elements starting at Begin[i] in
// dimension i. Values that depend on an unknown size are -1.
type Shard struct {
	Tile     []int // index of the tile
	Begin    []int
	Size     []int
	Elements int // number of elements
}

// native returns the partition for C, which the caller must delete; nil for nil.
func (p *Partition) native(u *uses) cdist.Dist_partition {
	if p == nil {
		return nil
	}
	native := cdist.NewDist_partition()
	native.SetKind(int32Of(int(p.Kind)))
	native.Set_shape(int64sOf(p.Shape), int64(len(p.Shape)))
	native.Set_dimensions(int64sOf(p.Dimensions), int64(len(p.Dimensions)))
	native.SetNum_logical_devices(u.int32("Partition.NumLogicalDevices", p.NumLogicalDevices))
	native.SetLogical_device(u.int32("Partition.LogicalDevice", p.LogicalDevice))
	native.SetUneven(intOf(p.Uneven))
	native.SetSpmd(intOf(p.SPMD))
	return native
}

func deletePartition(native cdist.Dist_partition) {
	if native != nil {
		cdist.DeleteDist_partition(native)
	}
}

// Check returns an error if a tensor cannot be partitioned in this way. The checks are those of TensorFlow.
func (p *Partition) Check() error {
	var u uses
	native := p.native(&u)
	defer deletePartition(native)
	if u.err != nil {
		return u.err
	}
	return fromNative(cdist.Dist_partition_check(native))
}

// Shard returns the part of the tensor that a logical device has. With [PartitionSplit], this is the tile
// with the index Tile; from one device to the next, the index of the last dimension varies fastest.
func (p *Partition) Shard(logicalDevice int) (Shard, error) {
	var u uses
	native, logicalDevice := p.native(&u), u.int32("logicalDevice", logicalDevice)
	defer deletePartition(native)
	if u.err != nil {
		return Shard{}, u.err
	}
	all, err := numbersOf(func(n cdist.Numbers) error { return n.Partition_shard(native, logicalDevice) })
	if err != nil {
		return Shard{}, err
	}
	n := len(p.Shape)
	return Shard{Tile: all[:n:n], Begin: all[n : 2*n : 2*n], Size: all[2*n : 3*n : 3*n], Elements: all[3*n]}, nil
}

// ReshardBytes returns the number of bytes that [Replica.Reshard] moves to a logical device from others. If
// logicalDevice is -1, it returns the number for all devices together.
func ReshardBytes(from, to *Partition, dtype DType, logicalDevice int) (int64, error) {
	var u uses
	before, after, logicalDevice := from.native(&u), to.native(&u), u.int32("logicalDevice", logicalDevice)
	defer deletePartition(before)
	defer deletePartition(after)
	if u.err != nil {
		return 0, u.err
	}
	var bytes uint64
	err := cdist.Dist_reshard_bytes(before, after, int32Of(int(dtype)), logicalDevice, &bytes)
	return int64(bytes), fromNative(err)
}

// Partition returns how a [ShardedValue] is divided. Uneven is true if the sizes of the shards are not those
// of an even split; [Value.Shard] then returns the sizes.
func (v *Value) Partition() (p Partition, err error) {
	err = v.with(func(value int64) error {
		native := cdist.NewDist_partition()
		defer cdist.DeleteDist_partition(native)
		if err := cdist.Dist_value_partition(value, native); err != nil {
			return fromNative(err)
		}
		p = Partition{
			Kind:              PartitionKind(native.GetKind()),
			NumLogicalDevices: native.GetNum_logical_devices(),
			LogicalDevice:     native.GetLogical_device(),
			Uneven:            native.GetUneven() != 0,
			SPMD:              native.GetSpmd() != 0,
		}
		p.Shape, _ = numbersOf(func(n cdist.Numbers) error {
			n.Partition_shape(native)
			return nil
		})
		p.Dimensions, _ = numbersOf(func(n cdist.Numbers) error {
			n.Partition_dimensions(native)
			return nil
		})
		return nil
	})
	return p, err
}

// Shard returns a copy of the part of a [ShardedValue] that a logical device has, and the position in the
// whole tensor at which it begins. It fails with [ErrNotFound] if the tensor is assigned to another logical
// device.
func (v *Value) Shard(logicalDevice int) (tensor RawTensor, begin []int, err error) {
	err = v.with(func(value int64) (err error) {
		if err := checkInt32("logicalDevice", logicalDevice); err != nil {
			return err
		}
		numbers := make([]int64, mostNumbers)
		begin, err = numbersOf(func(n cdist.Numbers) error {
			return n.Value_shard(value, logicalDevice, numbers)
		})
		if err == nil {
			tensor = unpack(numbers, nil).copied()
		}
		return err
	})
	return tensor, begin, err
}
