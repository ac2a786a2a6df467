// SPDX-License-Identifier: Apache-2.0

// sums.c in Go: adds up four numbers with each order of additions.
package main

import (
	"context"
	"fmt"
	"log"

	"libdist.example/dist"
)

// add returns the sum of the terms. Each replica contributes the same number of them, in order.
func add(ctx context.Context, replicas int, numerics dist.Numerics, terms []float64) (float64, error) {
	strategy, err := dist.New(dist.Options{Replicas: replicas})
	if err != nil {
		return 0, err
	}
	defer strategy.Close()
	sums, err := dist.Collect(ctx, strategy, func(r *dist.Replica) (float64, error) {
		n := len(terms) / replicas
		sum, in := []float64{0}, []dist.Array{}
		for _, term := range terms[r.ID()*n : (r.ID()+1)*n] {
			in = append(in, dist.Of([]float64{term}))
		}
		out := []dist.Array{dist.Of(sum)}
		err := r.AllReduce(dist.Sum, in, out, dist.Contributions(n), dist.WithNumerics(numerics))
		return sum[0], err
	})
	if err != nil {
		return 0, err
	}
	return sums[0], nil
}

func main() {
	ctx := context.Background()
	terms, moved := []float64{1, 1e16, -1e16, 1}, []float64{1e16, -1e16, 1, 1}
	names := []string{"ORDERED", "TREE", "REPRODUCIBLE"}
	for i, numerics := range []dist.Numerics{dist.Ordered, dist.Tree, dist.Reproducible} {
		four, err := add(ctx, 4, numerics, terms)
		if err != nil {
			log.Fatal(err)
		}
		two, err := add(ctx, 2, numerics, terms)
		if err != nil {
			log.Fatal(err)
		}
		after, err := add(ctx, 4, numerics, moved)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("%s: %g, %g, %g\n", names[i], four, two, after)
	}
}
