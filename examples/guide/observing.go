// SPDX-License-Identifier: Apache-2.0

// observing.c in Go: the late replica, metrics, a trace, and copies of a variable that differ. Run it as
// `observing TRACE.json`.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"os"

	"libdist.example/dist"
)

// step lets replica 0 begin the all-reduce before the barrier, and replica 1 after it: so replica 1 is late.
func step(r *dist.Replica) error {
	var work *dist.Work
	gradient := []float32{1}
	begin := func() error { return dist.AllReduce(r, dist.Sum, gradient, dist.Tag("gradients"), dist.Async(&work)) }
	if r.ID() == 0 {
		if err := begin(); err != nil {
			return err
		}
	}
	if err := r.Barrier(); err != nil {
		return err
	}
	if r.ID() == 1 {
		if err := begin(); err != nil {
			return err
		}
	}
	defer work.Close()
	return work.Wait()
}

func printStragglers(strategy *dist.Strategy) error {
	rows, err := strategy.Stragglers()
	for _, row := range rows {
		if row.Tag == "gradients" { // only this one is the same in every run
			fmt.Printf("replica %d was last in %d of %d rounds of %q\n", row.Replica, row.TimesLast, row.Rounds, row.Tag)
		}
	}
	return err
}

func findDrift(strategy *dist.Strategy) error {
	w, err := strategy.NewVariable(dist.Of([]float64{0, 0, 0}), nil)
	if err != nil {
		return err
	}
	defer w.Close()
	copied, err := dist.Component[float64](w, 1)
	if err != nil {
		return err
	}
	copied.Data[2] = 5 // a mistake: only one copy changes
	_, err = w.CheckDrift()
	var failure *dist.Error
	if errors.As(err, &failure) && failure.Code == dist.ErrDataLoss {
		fmt.Printf("replica %d has %s instead of %s\n", failure.Replica, failure.Received, failure.Expected)
		return nil
	}
	return err
}

func observe(ctx context.Context) error {
	strategy, err := dist.New(dist.Options{Replicas: 2, Log: dist.LogTo(slog.Default())})
	if err != nil {
		return err
	}
	defer strategy.Close()
	for range 3 {
		if err := strategy.Run(ctx, step); err != nil {
			return err
		}
	}
	if err := printStragglers(strategy); err != nil {
		return err
	}
	if err := findDrift(strategy); err != nil {
		return err
	}
	explanation, err := strategy.Explain()
	if err != nil {
		return err
	}
	metrics, err := strategy.WriteMetrics("train")
	if err != nil {
		return err
	}
	fmt.Fprint(os.Stderr, explanation, metrics)
	if len(os.Args) < 2 {
		return nil
	}
	trace, err := strategy.WriteTrace()
	if err != nil {
		return err
	}
	return os.WriteFile(os.Args[1], []byte(trace), 0o644)
}

func main() {
	if err := observe(context.Background()); err != nil {
		log.Fatal(err)
	}
}
