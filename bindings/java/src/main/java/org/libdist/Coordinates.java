// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import java.util.function.Consumer;
import org.libdist.internal.Numbers;

/** Arrays of coordinates as they cross: flat, row-major. */
final class Coordinates {
    private Coordinates() {}

    /** What native code gives as an array. */
    static long[] asked(Consumer<Numbers> question) {
        Numbers numbers = new Numbers();
        try {
            question.accept(numbers);
            long[] all = new long[Math.toIntExact(numbers.size())];
            for (int i = 0; i < all.length; i++) {
                all[i] = numbers.at(i);
            }
            return all;
        } finally {
            numbers.delete();
        }
    }

    static int[] ints(long[] numbers) {
        int[] ints = new int[numbers.length];
        for (int i = 0; i < ints.length; i++) {
            ints[i] = (int) numbers[i];
        }
        return ints;
    }

    /** Rows of {@code width} numbers. */
    static int[][] rows(long[] flat, int width) {
        int[][] rows = new int[width == 0 ? 0 : flat.length / width][width];
        for (int i = 0; i < rows.length * width; i++) {
            rows[i / width][i % width] = (int) flat[i];
        }
        return rows;
    }

    /** Tables of {@code height} rows each, {@code count} of them. */
    static int[][][] tables(long[] flat, int count, int height, int width) {
        int[][] rows = rows(flat, width);
        int[][][] tables = new int[count][height][];
        for (int i = 0; i < count * height; i++) {
            tables[i / height][i % height] = rows[i];
        }
        return tables;
    }

    /** How many numbers a coordinate has; {@code otherwise} where there is none. */
    static int width(int[][][] tables, int otherwise) {
        return tables.length > 0 && tables[0].length > 0 ? tables[0][0].length : otherwise;
    }

    /** All numbers of tables of one height, whose rows have {@code width} numbers. */
    static int[] flat(int[][][] tables, int width) {
        int height = tables.length == 0 ? 0 : tables[0].length;
        int[] flat = new int[Math.multiplyExact(Math.multiplyExact(tables.length, height), width)];
        int at = 0;
        for (int[][] table : tables) {
            if (table.length != height) {
                throw new IllegalArgumentException(table.length + " devices beside " + height);
            }
            for (int[] row : table) {
                System.arraycopy(checked(row, width), 0, flat, at, width);
                at += width;
            }
        }
        return flat;
    }

    /** Native code reads {@code width} numbers, however many there are. */
    static int[] checked(int[] coordinates, int width) {
        if (coordinates.length != width) {
            throw new IllegalArgumentException(
                    "coordinates of " + coordinates.length + " numbers, where they have " + width);
        }
        return coordinates;
    }
}
