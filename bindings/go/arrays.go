// SPDX-License-Identifier: Apache-2.0

package dist

import "libdist.example/dist/internal/cdist"

// Conversions of lists of numbers to and from C, in which nested lists are flat and row-major. nil stays nil, which
// stands for NULL.

func int64sOf(numbers []int) []int64 {
	if numbers == nil {
		return nil
	}
	all := make([]int64, len(numbers))
	for i, n := range numbers {
		all[i] = int64(n)
	}
	return all
}

// numbersOf returns the array that a query writes.
func numbersOf(read func(cdist.Numbers) error) ([]int, error) {
	numbers := cdist.NewNumbers()
	defer cdist.DeleteNumbers(numbers)
	if err := read(numbers); err != nil {
		return nil, fromNative(err)
	}
	all := make([]int, numbers.Size())
	for i := range all {
		all[i] = int(numbers.At(int64(i)))
	}
	return all, nil
}

// flat flattens coordinates [row][column] to one list. All rows must have the same number of columns, and
// each coordinate must have rank numbers.
func flat(nested [][][]int, rank int, row, column string) (numbers []int32, columns int, err error) {
	var u uses
	if len(nested) > 0 {
		columns = len(nested[0])
	}
	for i, list := range nested {
		if len(list) != columns {
			return nil, 0, newError(ErrInvalidArgument, "%s %d has %d %ss, %s 0 has %d: give all equally many",
				row, i, len(list), column, row, columns)
		}
		for j, coordinates := range list {
			if len(coordinates) != rank {
				return nil, 0, newError(ErrInvalidArgument, "%s %d of %s %d has %d coordinates, not %d",
					column, j, row, i, len(coordinates), rank)
			}
			numbers = append(numbers, u.int32s("coordinates", coordinates)...)
		}
	}
	return numbers, columns, u.err
}

// nested is the inverse of flat. It returns rows without columns if the object that had them is closed.
func nested(numbers []int, rows, columns, rank int) [][][]int {
	all := make([][][]int, rows)
	for i := range all {
		all[i] = make([][]int, columns)
		for j := range all[i] {
			at := (i*columns + j) * rank
			all[i][j] = numbers[at : at+rank : at+rank]
		}
	}
	return all
}

// nameIn is textOf with room for a name that contains a job.
func nameIn(job string, write func(room []byte) error) (string, error) {
	if err := checkText(job); err != nil {
		return "", err
	}
	return textIn(make([]byte, len(job)+128), write)
}
