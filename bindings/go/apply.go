// SPDX-License-Identifier: Apache-2.0

package dist

import "libdist.example/dist/internal/cdist"

// ApplyOptions specifies how [Replica.ReduceApply] applies reduced gradients: by gradient descent, or with a
// function of the program.
type ApplyOptions struct {
	LearningRate float64   // for gradient descent
	Momentum     float64   // for gradient descent; 0 = no momentum and no states
	ClipNorm     float64   // > 0: scale gradients down if their global norm exceeds it; 0 = no clipping
	States       [][]Array // lists with the shapes of the parameters; gradient descent with momentum needs one
	Function     ApplyFunc // update function; nil = gradient descent. The function of replica 0 is used
}

// ReduceApply reduces gradients and updates parameters with them in one pass, block by block, while each
// block is in the cache. Parameters and states are mirrored: either every replica passes its own copy and all
// copies are equal, or all replicas pass the same memory. With clipping, gradients also serves as scratch
// memory, and each replica must pass its own. After an error, the content of parameters and states is
// unspecified.
//
// norm is the global norm of the gradients before clipping, or 0 without clipping.
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
		int64(len(parameters)), native, c.native, &norm))
	return norm, err
}

func (c *collective) apply(native cdist.Dist_apply_options, apply *ApplyOptions) {
	native.SetKind(applySGD)
	native.SetLearning_rate(apply.LearningRate)
	native.SetMomentum(apply.Momentum)
	native.SetClip_norm(apply.ClipNorm)
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
