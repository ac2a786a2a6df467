// SPDX-License-Identifier: Apache-2.0

package dist

import (
	"slices"

	"libdist.example/dist/internal/cdist"
)

// ReduceApply reduces gradients and updates parameters with them in one pass, block by block, while each
// block is in the cache. Parameters and states are mirrored: either every replica passes its own copy and all
// copies are equal, or all replicas pass the same memory. With clipping, gradients also serves as scratch
// memory, and each replica must pass its own. After an error, the content of parameters and states is
// unspecified.
//
// norm is the global norm of the gradients before clipping, or 0 without clipping.
func (r *Replica) ReduceApply(op ReduceOp, gradients, parameters []Array, apply ApplyOptions,
	options ...Option) (norm float64, err error) {
	if lists := max(1, chosen(options).contributions); len(gradients) != lists*len(parameters) {
		return 0, newError(ErrInvalidArgument, "%d gradients are given for %d parameters, but there must be %d for each",
			len(gradients), len(parameters), lists)
	}
	for _, list := range apply.States {
		if len(list) != len(parameters) {
			return 0, newError(ErrInvalidArgument, "a list of %d states for %d parameters", len(list), len(parameters))
		}
	}
	var c collective
	defer c.end()
	replica := c.begin(r, options)
	gradientNumbers, parameterNumbers := c.tensors(gradients), c.tensors(parameters)
	native := apply.native(&c.uses)
	defer cdist.DeleteDist_apply_options(native)
	if apply.Function != nil {
		native.SetKind(applyCallback)
	}
	if c.err != nil {
		return 0, c.err
	}
	err = c.finish(cdist.Dist_reduce_apply(replica, int32Of(int(op)), gradientNumbers, parameterNumbers,
		int64(len(parameters)), native, c.native, &norm))
	return norm, err
}

// states sets lists of tensors.
func (u *uses) states(native cdist.Dist_apply_options, lists [][]Array) {
	numbers := u.tensors(slices.Concat(lists...))
	native.Set_states(numbers, int64(len(numbers)), int64(len(lists)))
}
