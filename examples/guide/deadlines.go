// SPDX-License-Identifier: Apache-2.0

// deadlines.c in Go: three runs that end early, and one that succeeds after them. The limits are contexts.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"libdist.example/dist"
)

// compute is a long computation. It stops when its run fails, is cancelled, or reaches its deadline.
func compute(r *dist.Replica) error {
	for {
		if err := r.Check(); err != nil {
			return err
		}
		// ... compute a little ...
	}
}

func report(name string, err error) {
	var failure *dist.Error
	switch {
	case err == nil:
		fmt.Printf("%s: OK\n", name)
	case errors.As(err, &failure) && failure.Replica >= 0:
		fmt.Printf("%s: %s, replica %d\n", name, failure.Code.String(), failure.Replica)
	case errors.As(err, &failure):
		fmt.Printf("%s: %s\n", name, failure.Code.String())
	default:
		fmt.Printf("%s: %v\n", name, err)
	}
}

func main() {
	strategy, err := dist.New(dist.Options{Replicas: 2})
	if err != nil {
		log.Fatal(err)
	}
	defer strategy.Close()
	ctx := context.Background()

	report("late", strategy.Run(ctx, func(r *dist.Replica) error { // replica 1 does not arrive at the barrier in time
		if r.ID() == 1 {
			return compute(r)
		}
		return r.Barrier(dist.Timeout(50 * time.Millisecond))
	}))

	limited, stop := context.WithTimeout(ctx, 50*time.Millisecond)
	defer stop()
	report("slow", strategy.Run(limited, func(r *dist.Replica) error { // replica 0 takes longer than the whole run may
		if r.ID() == 0 {
			return compute(r)
		}
		return nil
	}))

	cancellable, cancel := context.WithCancelCause(ctx)
	report("cancelled", strategy.Run(cancellable, func(r *dist.Replica) error {
		if r.ID() == 0 {
			cancel(errors.New("enough")) // any other goroutine could do so, too
		}
		return compute(r)
	}))

	report("quick", strategy.Run(ctx, func(r *dist.Replica) error { return r.Barrier() }))
}
