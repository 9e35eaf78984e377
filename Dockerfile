# Made from syncengine/tools/init/delivery/Dockerfile. Contains the program, and git to read the commit.
FROM python:3.12-slim
RUN apt-get update \
    && apt-get install --yes --no-install-recommends git \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --create-home --uid 10001 syncengine
RUN pip install --no-cache-dir "syncengine-connect[postgresql]==0.1.0"
USER syncengine
WORKDIR /project
ENTRYPOINT ["syncengine"]
CMD ["--help"]
