// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import java.util.function.Consumer;
import org.libdist.internal.Numbers;

/**
 * Converts arrays of coordinates between nested Java arrays and the flat, row-major arrays of native code.
 */
final class Coordinates {
    private Coordinates() {}

    /** Returns the array that native code passes to a query. */
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

    /** Splits a flat array into rows of {@code width} numbers. */
    static int[][] rows(long[] flat, int width) {
        int[][] rows = new int[width == 0 ? 0 : flat.length / width][width];
        for (int i = 0; i < rows.length * width; i++) {
            rows[i / width][i % width] = (int) flat[i];
        }
        return rows;
    }

    /** Splits a flat array into {@code count} tables of {@code height} rows each. */
    static int[][][] tables(long[] flat, int count, int height, int width) {
        int[][] rows = rows(flat, width);
        int[][][] tables = new int[count][height][];
        for (int i = 0; i < count * height; i++) {
            tables[i / height][i % height] = rows[i];
        }
        return tables;
    }

    /** Returns the number of numbers of a coordinate, or {@code otherwise} if there is no coordinate. */
    static int width(int[][][] tables, int otherwise) {
        return tables.length > 0 && tables[0].length > 0 ? tables[0][0].length : otherwise;
    }

    /** Returns all numbers of tables of the same height, whose rows must have {@code width} numbers. */
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

    /** Throws unless there are {@code width} numbers, because native code reads that many. */
    static int[] checked(int[] coordinates, int width) {
        if (coordinates.length != width) {
            throw new IllegalArgumentException(
                    "coordinates of " + coordinates.length + " numbers, where they have " + width);
        }
        return coordinates;
    }
}
