// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
)

func Example_run() {
	for _, replicas := range []int{2, 1, 3} {
		if err := run(context.Background(), replicas); err != nil {
			fmt.Println(err)
		}
	}
	// Output:
	// 2.0 2.0
	// 1.0
	// 3.0 3.0 3.0
}
