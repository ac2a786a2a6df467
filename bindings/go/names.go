// SPDX-License-Identifier: Apache-2.0

package dist

import "libdist.example/dist/internal/cdist"

// nameOf returns the name of a number in an enum domain.
func nameOf[T ~int](domain int, number T) string {
	return cdist.Dist_enum_name(domain, int32Of(int(number)))
}

// fromName returns the number of a name in an enum domain.
func fromName[T ~int](domain int, name string) (T, error) {
	if err := checkText(name); err != nil {
		return 0, err
	}
	var number int32
	err := cdist.Dist_enum_from_name(domain, name, &number)
	return T(number), fromNative(err)
}

// ReduceOp returns the operator that reduces a variable with this aggregation. It fails for
// aggregations that are not reductions.
func (aggregation Aggregation) ReduceOp() (ReduceOp, error) {
	var op int32
	err := cdist.Dist_reduce_op_from_aggregation(int32Of(int(aggregation)), &op)
	return ReduceOp(op), fromNative(err)
}
