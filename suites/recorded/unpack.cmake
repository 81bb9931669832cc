# Makes the folder TO from what suites/recorded/record, record_watched or record_qualification kept
# in FROM, with the archive FILE.
file(REMOVE_RECURSE ${TO})
file(MAKE_DIRECTORY ${TO})
if(EXISTS ${FROM}/run.json)
  file(COPY ${FROM}/run.json DESTINATION ${TO})
endif()
file(ARCHIVE_EXTRACT INPUT ${FROM}/${FILE} DESTINATION ${TO})
