# Makes the run folder TO from what suites/recorded/record kept in FROM.
file(REMOVE_RECURSE ${TO})
file(MAKE_DIRECTORY ${TO})
file(GLOB texts ${FROM}/*.json ${FROM}/*.jsonl)
file(COPY ${texts} DESTINATION ${TO})
file(ARCHIVE_EXTRACT INPUT ${FROM}/evidence.tar.xz DESTINATION ${TO})
