// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import java.io.File;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.libdist.internal.DistModule;
import org.libdist.internal.NativeLoader;

/**
 * The program dist-info, and the folder of the library that it loads, which is the library of this process. If
 * that comes from the jar, its file is deleted already, so both are written to a temporary folder.
 */
final class InfoProgram implements AutoCloseable {
    private static final String DELETED = " (deleted)";
    private static final String LIBRARIES = "LD_LIBRARY_PATH";
    private static final int TIMEOUT_SECONDS = 120; // more than the checks of dist-info take together

    private final List<Path> temporary = new ArrayList<>();
    private Path program;
    private Path folder;

    private InfoProgram() {}

    static InfoProgram find() throws IOException {
        InfoProgram found = new InfoProgram();
        try {
            String library = library();
            if (!library.endsWith(DELETED) || !found.extract()) {
                found.search(Path.of(library).getParent());
            }
        } catch (IOException | RuntimeException e) {
            found.close();
            throw e;
        }
        return found;
    }

    /** Returns the file of the library that this process has loaded. */
    private static String library() throws IOException {
        DistModule.dist_version(); // loads it
        try (Stream<String> maps = Files.lines(Path.of("/proc/self/maps"), StandardCharsets.ISO_8859_1)) {
            return maps.filter(line -> line.contains("/libdist.so"))
                    .map(line -> line.substring(line.indexOf('/')))
                    .findFirst()
                    .orElseThrow(() -> new IOException("the library of this process is in none of its files"));
        }
    }

    /** Returns false if the jar does not contain the program. */
    private boolean extract() throws IOException {
        folder = Files.createTempDirectory("libdist-info-").toAbsolutePath();
        temporary.add(folder);
        temporary.addAll(NativeLoader.extractProgram(folder));
        program = folder.resolve(NativeLoader.PROGRAM);
        return program.toFile().setExecutable(true);
    }

    private void search(Path libraries) {
        folder = libraries;
        Path installed = libraries.resolveSibling("bin");
        String path = Objects.requireNonNullElse(System.getenv("PATH"), "");
        List<String> folders = new ArrayList<>(List.of(libraries.toString(), installed.toString()));
        folders.addAll(List.of(path.split(File.pathSeparator)));
        program = folders.stream()
                          .map(each -> Path.of(each, NativeLoader.PROGRAM))
                          .filter(each -> Files.isRegularFile(each) && Files.isExecutable(each))
                          .findFirst()
                          .orElseThrow(() -> new DistException(Status.NOT_FOUND,
                                  "the program dist-info is not in " + libraries
                                          + ", beside the library of this process, not in " + installed
                                          + ", and not in PATH (\"" + path + "\"). Install the programs of"
                                          + " libdist, or add the folder that contains dist-info to PATH."));
    }

    ProcessBuilder command(List<String> arguments) {
        List<String> all = new ArrayList<>(List.of(program.toString()));
        all.addAll(arguments);
        ProcessBuilder builder = new ProcessBuilder(all);
        builder.environment().merge(LIBRARIES, folder.toString(),
                (old, own) -> old.isEmpty() ? own : own + File.pathSeparator + old);
        return builder;
    }

    static Info read(List<String> arguments) {
        try (InfoProgram found = find()) {
            return found.run(arguments);
        } catch (IOException e) {
            throw new DistException(Status.FAILED_PRECONDITION, "cannot run dist-info: " + e.getMessage(), e);
        }
    }

    private Info run(List<String> arguments) throws IOException {
        Path out = Files.createTempFile("libdist-info-", ".json");
        temporary.add(out);
        Path err = Files.createTempFile("libdist-info-", ".txt");
        temporary.add(err);
        Process process = command(arguments)
                                  .redirectInput(new File("/dev/null"))
                                  .redirectOutput(out.toFile())
                                  .redirectError(err.toFile())
                                  .start();
        try {
            if (!process.waitFor(TIMEOUT_SECONDS, TimeUnit.SECONDS)) {
                throw new DistException(Status.DEADLINE_EXCEEDED,
                        program + " was killed because it did not end within " + TIMEOUT_SECONDS + " s");
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new DistException(Status.CANCELLED, "the thread was interrupted while dist-info ran", e);
        } finally {
            process.destroyForcibly();
        }
        int status = process.exitValue();
        String json = Files.readString(out);
        if (status > 1 || json.isEmpty()) { // 1: it has found a problem
            throw new DistException(Status.FAILED_PRECONDITION,
                    program + " failed with status " + status + ": " + Files.readString(err).strip());
        }
        return new Info(status == 0, json);
    }

    /** Deletes the temporary files. */
    @Override
    public void close() {
        for (int i = temporary.size() - 1; i >= 0; i--) {
            temporary.get(i).toFile().delete(); // what stays in a temporary folder does no harm
        }
        temporary.clear();
    }
}
