// SPDX-License-Identifier: Apache-2.0

// Package dist runs one function on several replicas at the same time and lets them meet in collectives:
// tf.distribute's model for host CPUs, by libdist.
//
//	strategy, err := dist.New(dist.Options{Replicas: 4})
//	if err != nil {
//		return err
//	}
//	defer strategy.Close()
//	err = strategy.Run(ctx, func(r *dist.Replica) error {
//		gradient := []float32{1, 2, 3}
//		return dist.AllReduce(r, dist.Sum, gradient)
//	})
//
// Errors. What libdist says is an [*Error]: errors.Is compares its code with [ErrAborted] and its like,
// errors.As gives its fields. An error that a replica function returns comes back from [Strategy.Run] as it
// was returned; a panic comes back as a [*PanicError]. Either way the other replicas' collectives end with
// ErrAborted and name the culprit: nobody hangs.
//
// Memory. Slices are used where they lie, without a copy, until the call returns.
package dist
