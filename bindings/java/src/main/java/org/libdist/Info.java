// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import java.io.IOException;
import java.util.List;
import java.util.Objects;

/**
 * A report of dist-info about this machine. As a program, {@code java -cp libdist-java.jar org.libdist.Info} prints
 * it, and takes the arguments of dist-info.
 *
 * @param isOk whether a check has found no problem; true if nothing was checked
 * @param json one JSON object, whose keys are described in the section "dist-info" of capi/tools/README.md
 */
public record Info(boolean isOk, String json) {
    private static final int FAILED = 125; // like dist-info, whose status 1 means that it has found a problem

    /** Runs the program dist-info with these arguments, and exits with its status. */
    public static void main(String[] args) {
        int status = FAILED;
        try (InfoProgram program = InfoProgram.find()) {
            status = program.command(List.of(Objects.requireNonNull(args, "args"))).inheritIO().start().waitFor();
        } catch (DistException | IOException e) {
            System.err.println(e.getMessage());
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
        System.exit(status);
    }
}
