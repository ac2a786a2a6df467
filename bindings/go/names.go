// SPDX-License-Identifier: Apache-2.0

package dist

import "libdist.example/dist/internal/cdist"

// fromName looks a name up by one of the generated functions.
func fromName[T ~int](look func(string, *int32) error, name string) (T, error) {
	var number int32
	err := look(name, &number)
	return T(number), fromNative(err)
}

// ReduceOpFromAggregation is the operator by which a variable of this aggregation is reduced.
func ReduceOpFromAggregation(aggregation Aggregation) (ReduceOp, error) {
	var op int32
	err := cdist.Dist_reduce_op_from_aggregation(int32Of(int(aggregation)), &op)
	return ReduceOp(op), fromNative(err)
}
