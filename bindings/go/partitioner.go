// SPDX-License-Identifier: Apache-2.0

package dist

import "libdist.example/dist/internal/cdist"

// partitions calls a partitioner for the number of parts along each dimension. bound names the argument that
// limits the number along axis.
func partitions(shape []int, axis int, bound string, most int,
	ask func(shape []int64, ndim int64, out *int64) error) ([]int, error) {
	if err := checkInt32("axis", axis); err != nil {
		return nil, err
	}
	if err := checkInt32(bound, most); err != nil {
		return nil, err
	}
	out := make([]int64, len(shape)+1)
	if err := ask(int64sOf(shape), int64(len(shape)), &out[0]); err != nil {
		return nil, fromNative(err)
	}
	parts := make([]int, len(shape))
	for i := range parts {
		parts[i] = int(out[i])
	}
	return parts, nil
}

// FixedShards divides a dimension of a variable into numShards parts, or into one part per element if the
// dimension has fewer elements (TensorFlow: FixedShardsPartitioner). The result is the number of parts of
// each dimension: 1 for all others. A negative axis counts from the end.
func FixedShards(shape []int, axis, numShards int) ([]int, error) {
	return partitions(shape, axis, "numShards", numShards, func(shape []int64, ndim int64, out *int64) error {
		return cdist.Partitions_fixed_shards(shape, ndim, axis, numShards, out)
	})
}

// MinSizeShards divides a dimension into as many parts as possible with about minShardBytes each, at least 1
// and at most maxShards (TensorFlow: MinSizePartitioner). TensorFlow's defaults are
// [PartitionerMinShardBytes] and [PartitionerMaxShards]; for texts, elementBytes is
// [PartitionerBytesPerText].
func MinSizeShards(shape []int, axis, elementBytes, minShardBytes, maxShards int) ([]int, error) {
	return partitions(shape, axis, "maxShards", maxShards, func(shape []int64, ndim int64, out *int64) error {
		return cdist.Partitions_min_size(shape, ndim, axis, int64(elementBytes), int64(minShardBytes),
			maxShards, out)
	})
}

// MaxSizeShards divides a dimension into as few parts as possible with at most maxShardBytes each, but at
// most maxShards (TensorFlow: MaxSizePartitioner). A maxShards of 0 means no limit.
func MaxSizeShards(shape []int, axis, elementBytes, maxShardBytes, maxShards int) ([]int, error) {
	return partitions(shape, axis, "maxShards", maxShards, func(shape []int64, ndim int64, out *int64) error {
		return cdist.Partitions_max_size(shape, ndim, axis, int64(elementBytes), int64(maxShardBytes),
			maxShards, out)
	})
}

// RowsOfPart returns the rows of one part of a divided dimension: begin to begin+size-1 (TensorFlow:
// ShardedVariable).
func RowsOfPart(numRows, numParts, part int) (begin, size int, err error) {
	var first, n int64
	err = cdist.Dist_partitions_part(int64(numRows), int64(numParts), int64(part), &first, &n)
	return int(first), int(n), fromNative(err)
}

// PartOfRow returns the part in which a row lies, and the index of the row in that part.
func PartOfRow(numRows, numParts, row int) (part, offset int, err error) {
	var found, at int64
	err = cdist.Dist_partitions_part_of(int64(numRows), int64(numParts), int64(row), &found, &at)
	return int(found), int(at), fromNative(err)
}
