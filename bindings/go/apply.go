// SPDX-License-Identifier: Apache-2.0

package dist

import "libdist.example/dist/internal/cdist"

// ApplyOptions say how ReduceApply uses a reduced gradient: by gradient descent, or by a function of the program's.
type ApplyOptions struct {
	LearningRate float64   // of gradient descent
	Momentum     float64   // 0: none, and no states
	ClipNorm     float64   // > 0: gradients are scaled down to this global norm where it is larger
	States       [][]Array // lists like the parameters; gradient descent with momentum: one
	Function     ApplyFunc // nil: gradient descent. Replica 0's is used
}

// ReduceApply reduces gradients and updates parameters with them in one pass, block by block while a block is in cache.
// Parameters and states are mirrored: every replica gives its own copy, equal to the others', or all give the same one.
// norm is that of the gradients before the clip; 0 without one.
func (r *Replica) ReduceApply(op ReduceOp, gradients, parameters []Array, apply ApplyOptions,
	options ...Option) (norm float64, err error) {
	if err := fits(gradients, parameters, options); err != nil {
		return 0, err
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
	native := cdist.NewDist_apply_options()
	defer cdist.DeleteDist_apply_options(native)
	c.apply(native, &apply)
	if c.err != nil {
		return 0, c.err
	}
	err = c.finish(cdist.Dist_reduce_apply(replica, int32Of(int(op)), gradientNumbers, parameterNumbers,
		int64(len(parameters)), native, c.native))
	if err != nil || apply.ClipNorm <= 0 {
		return 0, err
	}
	return native.Norm(), nil
}

func (c *collective) apply(native cdist.Dist_apply_options, apply *ApplyOptions) {
	native.SetKind(applySGD)
	native.SetLearning_rate(apply.LearningRate)
	native.SetMomentum(apply.Momentum)
	native.SetClip_norm(apply.ClipNorm)
	if apply.ClipNorm > 0 {
		native.Want_norm()
	}
	var states []Array
	for _, list := range apply.States {
		states = append(states, list...)
	}
	numbers := c.tensors(states)
	native.Set_states(numbers, int64(len(numbers)), int64(len(apply.States)))
	if apply.Function != nil {
		native.SetKind(applyCallback)
		c.user.apply = apply.Function
		token := register(&c.user)
		c.tokens = append(c.tokens, token)
		native.Set_function(token)
	}
}
