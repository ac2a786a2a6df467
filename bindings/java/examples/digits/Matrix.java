// SPDX-License-Identifier: Apache-2.0

package digits;

import java.util.Arrays;

/**
 * Arithmetic in a fixed order: every sum from left to right, each operation rounded to float, as Java
 * requires. It computes the same bits as examples/digits/matrix.c.
 */
final class Matrix {
    private Matrix() {}

    /**
     * out[i][j] = start[j] + a[i][0] * b[0][j] + a[i][1] * b[1][j] + ...
     *
     * @param a its element [i][k] is at i * rowStep + k * columnStep
     * @param start may be null, which means zeros
     */
    static void multiply(int rows, int inner, int columns, float[] a, int rowStep, int columnStep, float[] b,
            float[] start, float[] out) {
        for (int i = 0; i < rows; i++) {
            int first = i * columns;
            if (start == null) {
                Arrays.fill(out, first, first + columns, 0f);
            } else {
                System.arraycopy(start, 0, out, first, columns);
            }
            for (int k = 0; k < inner; k++) {
                addScaled(a[i * rowStep + k * columnStep], b, k * columns, out, first, columns);
            }
        }
    }

    /** out += scale * row. */
    private static void addScaled(float scale, float[] rows, int row, float[] out, int first, int columns) {
        for (int j = 0; j < columns; j++) {
            out[first + j] += scale * rows[row + j];
        }
    }

    /** out[j] = in[0][j] + in[1][j] + ... */
    static void sumRows(int rows, int columns, float[] in, float[] out) {
        Arrays.fill(out, 0, columns, 0f);
        for (int i = 0; i < rows; i++) {
            addScaled(1f, in, i * columns, out, 0, columns);
        }
    }

    static void transpose(int rows, int columns, float[] in, float[] out) {
        for (int i = 0; i < rows; i++) {
            for (int j = 0; j < columns; j++) {
                out[j * rows + i] = in[i * columns + j];
            }
        }
    }

    /** Returns e^x for x <= 0. It uses only + and *, so its bits are the same everywhere. */
    static float exp(float x) {
        if (x < -87f) {
            return 0f;
        }
        int n = (int) (x * 1.44269504f - 0.5f);
        float r = (x - n * 0.693359375f) + n * 2.12194440e-4f;
        float p = 1.9875691500e-4f;
        p = p * r + 1.3981999507e-3f;
        p = p * r + 8.3334519073e-3f;
        p = p * r + 4.1665795894e-2f;
        p = p * r + 1.6666665459e-1f;
        p = p * r + 5.0000001201e-1f;
        float e = (p * (r * r) + r) + 1f;
        return e * Float.intBitsToFloat((n + 127) << 23);
    }
}
