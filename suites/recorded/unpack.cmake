# Makes the run folder TO from what suites/recorded/record kept in FROM.
file(REMOVE_RECURSE ${TO})
file(MAKE_DIRECTORY ${TO})
file(COPY ${FROM}/run.json DESTINATION ${TO})
file(ARCHIVE_EXTRACT INPUT ${FROM}/evidence.tar.xz DESTINATION ${TO})
