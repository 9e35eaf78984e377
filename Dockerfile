# Made from syncengine/tools/init/delivery/Dockerfile. Contains the program, and git to read the commit.
FROM python:3.12-slim
RUN apt-get update \
    && apt-get install --yes --no-install-recommends git \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --create-home --uid 10001 syncengine
# What stands beside this file, never a name from an index.
COPY pyproject.toml README.md LICENSE /usr/src/syncengine/
COPY syncengine /usr/src/syncengine/syncengine
RUN pip install --no-cache-dir "/usr/src/syncengine[postgresql]"
# Or glibc would keep the memory of the largest configuration in an arena for each thread.
ENV MALLOC_ARENA_MAX=1
USER syncengine
WORKDIR /project
ENTRYPOINT ["syncengine"]
CMD ["--help"]
