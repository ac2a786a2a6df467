// SPDX-License-Identifier: Apache-2.0

package dist_test

import (
	"errors"
	"testing"

	"libdist.example/dist"
)

func TestPartitioners(t *testing.T) {
	is(t, "fixed", all(dist.FixedShards([]int{10, 2}, 0, 3)), all([]int{3, 1}, nil))
	is(t, "from the end", all(dist.FixedShards([]int{2, 10}, -1, 3)), all([]int{1, 3}, nil))
	is(t, "min", all(dist.MinSizeShards([]int{6, 1}, 0, 4, 8, 10)), all([]int{3, 1}, nil))
	is(t, "defaults", all(dist.MinSizeShards([]int{10, 3}, 0, 4, dist.PartitionerMinShardBytes,
		dist.PartitionerMaxShards)), all([]int{1, 1}, nil))
	is(t, "max", all(dist.MaxSizeShards([]int{6, 1}, 0, 1, 1, 0)), all([]int{6, 1}, nil))
	is(t, "at most", all(dist.MaxSizeShards([]int{6, 1}, 0, 1, 1, 4)), all([]int{4, 1}, nil))
	is(t, "rows", all(dist.RowsOfPart(10, 3, 1)), all(4, 3, nil))
	is(t, "part", all(dist.PartOfRow(10, 3, 9)), all(2, 2, nil))
	for i, ask := range []func() ([]int, error){
		func() ([]int, error) { return dist.FixedShards(nil, 0, 3) },
		func() ([]int, error) { return dist.FixedShards([]int{}, 0, 3) },
		func() ([]int, error) { return dist.FixedShards([]int{3}, 1, 3) },
		func() ([]int, error) { return dist.FixedShards([]int{3}, 1<<40, 3) },
		func() ([]int, error) { return dist.FixedShards(make([]int, dist.MaxNDim+1), 0, 3) },
		func() ([]int, error) { return dist.FixedShards(make([]int, 1<<20), 0, 3) },
		func() ([]int, error) { return dist.MinSizeShards([]int{3}, 0, 0, 1, 1) },
		func() ([]int, error) { return dist.MinSizeShards([]int{1 << 62, 1 << 62}, 0, 4, 1, 1) },
		func() ([]int, error) { return dist.MaxSizeShards([]int{0, 4}, 0, 4, 4, 0) },
		func() ([]int, error) { _, _, err := dist.RowsOfPart(10, 3, 3); return nil, err },
		func() ([]int, error) { _, _, err := dist.PartOfRow(10, 3, 10); return nil, err },
	} {
		if _, err := ask(); !errors.Is(err, dist.ErrInvalidArgument) {
			t.Error(i, err)
		}
	}
}
