// SPDX-License-Identifier: Apache-2.0

// Command dist-info runs the program dist-info of libdist with the library that package dist loads:
//
//	go run libdist.example/dist/cmd/dist-info --check
package main

import (
	"fmt"
	"os"
	"syscall"

	_ "libdist.example/dist" // loads the library
	"libdist.example/dist/internal/infoprogram"
)

func main() {
	path, environment, err := infoprogram.Find()
	if err == nil {
		err = syscall.Exec(path, append([]string{"dist-info"}, os.Args[1:]...), environment)
	}
	fmt.Fprintln(os.Stderr, "dist-info:", err)
	os.Exit(125) // like dist-info, which uses status 1 for a problem that it found
}
